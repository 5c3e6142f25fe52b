package server

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandwich/runtime/api"
)

// objects reads a stream with one object per line.
func objects(t *testing.T, w *httptest.ResponseRecorder) (out []any) {
	t.Helper()
	for line := range strings.Lines(w.Body.String()) {
		out = append(out, parsed(t, []byte(line)))
	}
	return out
}

const ollamaTools = `"tools":[{"type":"function","function":{"name":"clock"}},{"type":"function","function":{"name":"pick"}}]`

func TestOllamaChat(t *testing.T) {
	g := &calling{}
	s := New(g, Options{})
	const body = `{"model":"m","messages":[{"role":"system","content":"Be brief"},{"role":"user","content":"Hi"},
		{"role":"assistant","content":"","thinking":"hm","tool_calls":[
			{"function":{"name":"pick","arguments":{"a":1}}},{"function":{"name":"clock","arguments":{}}},
			{"function":{"name":"pick","arguments":{"a":2}}}]},
		{"role":"tool","content":"noon","tool_name":"clock"},{"role":"tool","content":"1"},{"role":"tool","content":"2"}],
		"options":{"num_predict":5,"temperature":0,"seed":3,"stop":["END"],"num_ctx":9999,"num_thread":2,"mirostat":2},
		"keep_alive":"5m","format":{"type":"object"},` + ollamaTools
	w := post(t, s, "/api/chat", body+"}")
	all := objects(t, w)
	var text, thought, calls string
	for _, o := range all {
		piece, _ := at(o, "message", "content").(string)
		hm, _ := at(o, "message", "thinking").(string)
		text, thought = text+piece, thought+hm
		if list, ok := at(o, "message", "tool_calls").([]any); ok {
			for _, c := range list {
				arguments, _ := json.Marshal(at(c, "function", "arguments"))
				calls += fmt.Sprint(at(c, "function", "name"), string(arguments))
			}
		}
		if at(o, "model") != "tales-6m" || at(o, "message", "role") != "assistant" {
			t.Errorf("%v", o)
		}
	}
	last := all[len(all)-1]
	if text != "On it." || thought != "hm" || calls != `clock{"a":"\n"}pick{}` || at(last, "done") != true ||
		at(last, "done_reason") != "stop" || at(last, "prompt_eval_count") != 7.0 || at(last, "eval_count") != 7.0 ||
		at(last, "prompt_cached_count") != 3.0 || len(at(last, "warnings").([]any)) != 2 ||
		w.Header().Get("Content-Type") != "application/x-ndjson" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	m, r := g.last.Messages, g.last
	if len(m) != 6 || m[2].Reasoning != "hm" || m[3].CallID != m[2].Calls[1].ID || m[4].CallID != m[2].Calls[0].ID ||
		m[5].CallID != m[2].Calls[2].ID || m[5].Name != "pick" || r.MaxTokens != 5 || r.Sampling.Seed != 3 ||
		r.Sampling.Temperature != 0 || r.Sampling.TopK != 40 || r.Format.Kind != api.JSONSchema || len(r.Tools) != 2 {
		t.Errorf("%+v", r)
	}
	v := parsed(t, post(t, s, "/api/chat", body+`,"stream":false}`).Body.Bytes())
	if at(v, "message", "content") != "On it." || at(v, "message", "thinking") != "hm" ||
		at(v, "message", "tool_calls", 1, "function", "name") != "pick" || at(v, "done") != true {
		t.Errorf("%v", v)
	}
}

func TestOllamaGenerate(t *testing.T) {
	f := &fake{words: []string{"a", "b"}}
	s := New(f, Options{})
	w := post(t, s, "/api/generate", `{"model":"m","prompt":"Hi","system":"S","logprobs":true,"top_logprobs":1}`)
	all := objects(t, w)
	if len(all) != 3 || at(all[0], "response") != "a" || at(all[1], "logprobs", 0, "token") != "b" ||
		at(all[2], "response") != "" || at(all[2], "done_reason") != "stop" {
		t.Errorf("%s", w.Body)
	}
	if m := f.request().Messages; len(m) != 2 || m[0].Content != "S" || m[1].Content != "Hi" ||
		f.request().Sampling.Temperature != 0.8 {
		t.Errorf("%+v", f.request())
	}
	v := parsed(t, post(t, s, "/api/generate", `{"model":"m","prompt":"Hi","raw":true,"stream":false,"format":"json",
		"options":{"num_predict":1}}`).Body.Bytes())
	if r := f.request(); at(v, "response") != "a" || at(v, "done_reason") != "length" || r.Text != "Hi" || r.Chat() ||
		r.Format.Kind != api.JSONObject {
		t.Errorf("%v %+v", v, r)
	}
	for path, field := range map[string]string{"/api/generate": "response", "/api/chat": "message"} {
		v := parsed(t, post(t, s, path, `{"model":"m","keep_alive":0}`).Body.Bytes())
		if at(v, "done_reason") != "load" || at(v, field) == nil {
			t.Errorf("%s: %v", path, v)
		}
	}
}

// TestOllamaKeepAlive checks that an empty object keeps a client waiting, because clients parse
// each line as an object.
func TestOllamaKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &fake{words: []string{"x"}, delay: 65 * time.Millisecond}
		w := post(t, New(slow, Options{Heartbeat: 10 * time.Millisecond}), "/api/generate", `{"prompt":"Hi"}`)
		if all := objects(t, w); len(all) != 8 || at(all[0], "response") != "" || at(all[0], "done") != false {
			t.Errorf("%s", w.Body)
		}
	})
}

func TestOllamaModels(t *testing.T) {
	s := New(&fake{}, Options{})
	for path, has := range map[string]string{"/api/version": `{"version":"`, "/api/tags": `"name":"tales-6m"`,
		"/api/ps": `"context_length":512`} {
		if w := serve(s, "GET", path, ""); w.Code != 200 || !strings.Contains(w.Body.String(), has) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if w := post(t, s, "/api/show", `{"model":"m"}`); w.Code != 200 ||
		at(parsed(t, w.Body.Bytes()), "capabilities", 1) != "tools" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Every error is a sentence in the field error.
func TestOllamaRefused(t *testing.T) {
	s := New(&calling{}, Options{})
	for body, has := range map[string]string{
		`{`: "not valid JSON", `{"messages":7}`: "messages must be a list",
		`{"messages":[{"role":"user","content":"","images":["aGk="]}]}`:              "messages[0].images",
		`{"messages":[{"role":"user","content":[{"type":"text"}]}]}`:                 "content[0].text is missing",
		`{"messages":[{"role":"user","content":"x"}],"tools":[{}]}`:                  "tools[0].function is missing",
		`{"messages":[{"role":"user","content":"x"}],"format":7}`:                    `must be "json" or`,
		`{"messages":[{"role":"user","content":"x"}],"options":{"temperature":9}}`:   "between 0 and 2",
		`{"messages":[{"role":"user","content":"x"}],"options":{"temperature":"x"}}`: "options.temperature",
		`{"messages":[{"role":"user","content":"x"}],"options":7}`: "options must be " +
			"an object",
		`{"prompt":"x","suffix":"y"}`: "suffix is not", `{"prompt":"x","template":"y"}`: "template is not",
		`{"prompt":" ","images":["aGk="]}`: "images are not", `{"promt":"x"}`: "did you mean prompt",
	} {
		w := post(t, s, "/api/chat", body)
		message, _ := at(parsed(t, w.Body.Bytes()), "error").(string)
		if w.Code != 400 || !strings.Contains(message, has) {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
	for path, status := range map[string]int{"/api/pull": 404, "/api/embed": 400, "/api/version": 405} {
		w := post(t, s, path, `{}`)
		if message, _ := at(parsed(t, w.Body.Bytes()), "error").(string); w.Code != status || message == "" {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	for _, r := range []string{"POST /api/pull", "POST /api/push", "POST /api/create", "POST /api/copy",
		"DELETE /api/delete", "HEAD /api/blobs/sha256:00", "POST /api/blobs/sha256:00"} {
		method, path, _ := strings.Cut(r, " ")
		w := serve(s, method, path, `{"model":"m"}`)
		if message, _ := at(parsed(t, w.Body.Bytes()), "error").(string); w.Code != 404 || !strings.Contains(message,
			"sandwich pull") {
			t.Errorf("%s: %d %s", r, w.Code, w.Body)
		}
	}
	w := post(t, New(&fake{words: []string{"a"}, endErr: api.ErrClosed}, Options{}), "/api/generate", `{"prompt":"x"}`)
	if all := objects(t, w); len(all) != 2 || at(all[1], "error") == nil {
		t.Errorf("%s", w.Body)
	}
}
