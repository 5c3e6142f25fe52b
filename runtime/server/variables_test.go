package server

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestToldToTemplates checks that reasoning settings reach the template from every API under the
// names that templates use, and that chat_template_kwargs override them.
func TestToldToTemplates(t *testing.T) {
	f := &fake{words: []string{"x"}}
	s := New(f, Options{})
	const messages, ollama = "/v1/messages", "/api/chat"
	hi := `{"messages":[{"role":"user","content":"hi"}],"max_tokens":3,`
	const o = `{"messages":[{"role":"user","content":"hi"}],"stream":false,`
	for _, c := range []struct{ path, body, want string }{
		{chatPath, chat(`"temperature":0`), ``},
		{chatPath, chat(`"enable_thinking":false`), `{"enable_thinking":false,"thinking":false}`},
		{chatPath, chat(`"reasoning_effort":"none"`), `{"enable_thinking":false,"thinking":false}`},
		{chatPath, chat(`"reasoning_effort":"low"`), `{"reasoning_effort":"low"}`},
		{chatPath, chat(`"chat_template_kwargs":{"enable_thinking":false,"x":[1]}`),
			`{"enable_thinking":false,"x":[1]}`},
		{chatPath, chat(`"enable_thinking":true,"chat_template_kwargs":{"thinking":"deep"}`),
			`{"enable_thinking":true,"thinking":"deep"}`},
		{messages, hi + `"thinking":{"type":"disabled"}}`, `{"enable_thinking":false,"thinking":false}`},
		{messages, hi + `"thinking":{"type":"enabled","budget_tokens":9}}`, `{"enable_thinking":true,"thinking":true}`},
		{messages, hi + `"thinking":{"type":"adaptive"}}`, ``},
		{ollama, o + `"think":false}`, `{"enable_thinking":false,"thinking":false}`},
		{ollama, o + `"think":"high"}`, `{"reasoning_effort":"high"}`},
		{responsesPath, `{"input":"x","reasoning":{"effort":"medium","summary":"auto"}}`,
			`{"reasoning_effort":"medium"}`},
	} {
		if w := post(t, s, c.path, c.body); w.Code != 200 {
			t.Errorf("%s %s: %d %s", c.path, c.body, w.Code, w.Body)
			continue
		}
		got := f.request().Variables
		if c.want == "" || got == "" {
			if got != c.want {
				t.Errorf("%s %s: told %s", c.path, c.body, got)
			}
			continue
		}
		var a, b map[string]any // later values win, as in templates
		if err := json.Unmarshal([]byte(got), &a); err != nil {
			t.Fatalf("%s: %v", got, err)
		}
		_ = json.Unmarshal([]byte(c.want), &b)
		x, _ := json.Marshal(a)
		y, _ := json.Marshal(b)
		if string(x) != string(y) {
			t.Errorf("%s %s: told %s, want %s", c.path, c.body, x, y)
		}
	}
	for _, c := range []struct{ path, body, param string }{
		{chatPath, chat(`"reasoning_effort":"low medium"`), "reasoning_effort"},
		{chatPath, chat(`"chat_template_kwargs":"x"`), "chat_template_kwargs"},
		{messages, hi + `"thinking":{"type":"sometimes"}}`, "thinking.type"},
		{messages, hi + `"thinking":7}`, "thinking"},
		{ollama, o + `"think":"aloud"}`, "think"},
		{responsesPath, `{"input":"x","reasoning":{"effort":"so-so"}}`, "reasoning.effort"},
	} {
		if w := post(t, s, c.path, c.body); w.Code != 400 || !strings.Contains(w.Body.String(), c.param) {
			t.Errorf("%s %s: %d %s", c.path, c.body, w.Code, w.Body)
		}
	}
}
