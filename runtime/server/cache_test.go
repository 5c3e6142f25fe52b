package server

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"sandwich/runtime/api"
	"sandwich/runtime/server/exchange"
)

// cached is a Generator that reports cached prompt tokens.
type cached struct {
	fake
	queue api.Queue
}

func (g *cached) Generate(ctx context.Context, r api.Request, emit func(api.Token) error) (api.Result, error) {
	r.Queued(g.queue)
	return g.fake.Generate(ctx, r, emit)
}

// TestCacheHeader checks that header and log report the cached part of a prompt and where it
// differs.
func TestCacheHeader(t *testing.T) {
	for _, c := range []struct {
		queue api.Queue
		want  string
	}{
		{api.Queue{Prompt: 6374, Diverged: 37}, "hit=0; prompt=6374; diverged=37"},
		{api.Queue{Prompt: 130, Cached: 128, Diverged: -1}, "hit=128; prompt=130"},
		{api.Queue{Prompt: 130, Cached: 64, Diverged: 0}, "hit=64; prompt=130; diverged=0"},
		{api.Queue{Prompt: 400, Cached: 64, Stored: 320, Diverged: -1}, "hit=64; prompt=400; disk=320"},
		{api.Queue{}, ""},
	} {
		for _, path := range []string{chatPath, messagesPath, responsesPath, "/api/chat"} {
			for _, stream := range []string{"true", "false"} {
				var j journal
				s := New(&cached{fake{words: []string{"a"}}, c.queue}, Options{Log: j.logger(slog.LevelDebug)})
				body := `{"messages":[{"role":"user","content":"x"}]`
				if path == responsesPath {
					body = `{"input":"x"`
				}
				w := post(t, s, path, body+`,"stream":`+stream+`}`)
				if got := w.Header().Get(exchange.CacheHeader); w.Code != 200 || got != c.want {
					t.Errorf("%s: %d, header %q, want %q", path, w.Code, got, c.want)
				}
				lines := j.lines(t, "prompt cache")
				if len(lines) != map[bool]int{true: 1, false: 0}[c.want != ""] {
					t.Fatalf("%s: %v", path, lines)
				}
				if c.queue.Diverged > 0 && (lines[0]["diverged"] != 37.0 || lines[0]["prompt"] != 6374.0) {
					t.Errorf("%s: %v", path, lines)
				}
			}
		}
	}
}

// TestBillingBlock checks that a client's accounting block is removed from the system prompt and
// the rest stays.
func TestBillingBlock(t *testing.T) {
	const header = `{"type":"text","text":"x-anthropic-billing-header: cc_version=1; cch=00001;"}`
	for _, c := range []struct{ system, said, warning string }{
		{`[` + header + `,{"type":"text","text":"Be brief."}]`, "system Be brief.\nuser a\n", ""},
		{`[{"type":"text","text":"Be brief."},` + header + `]`, "system Be brief.\nuser a\n", ""},
		{`[` + header + `]`, "user a\n", ""},
		{`[{"type":"text","text":"\n x-anthropic-billing-header: cch=2"},"S"]`, "system S\nuser a\n", ""},
		{`[{"type":"text","text":"x-anthropic-billing-header: cch=2\nBe brief."},"S"]`, "system S\nuser a\n",
			"system: a block of several lines that starts with x-anthropic-billing-header: was left out"},
		{`[{"type":"text","text":"Explain x-anthropic-billing-header: to me."}]`,
			"system Explain x-anthropic-billing-header: to me.\nuser a\n", ""},
		{`"x-anthropic-billing-header: is a header."`, "system x-anthropic-billing-header: is a header.\nuser a\n", ""},
		{`[{"type":"image"},"S"]`, "system S\nuser a\n", "system[0]: an image was left out"},
		{`[null]`, "user a\n", "system[0]: null"}, {`[]`, "user a\n", ""},
	} {
		said, warnings := understood(t, messagesPath, `{"system":`+c.system+`,"messages":[{"role":"user","content":"a"}]}`)
		if said != c.said || !covers(warnings, c.warning) || strings.Contains(said, "cch") {
			t.Errorf("%s: said %q, want %q; warnings %q, want %q", c.system, said, c.said, warnings, c.warning)
		}
	}
}

// marksOf describes the marks of a request for the prefix store.
func marksOf(r *api.Request) string {
	var list []string
	for i, m := range r.Messages {
		switch {
		case m.Mark == api.MarkEnd:
			list = append(list, fmt.Sprintf("%d:end", i))
		case m.Mark > 0:
			list = append(list, fmt.Sprintf("%d:%s", i, m.Content[:m.Mark]))
		}
	}
	if r.ToolsMarked {
		list = append(list, "tools")
	}
	if r.Keep {
		list = append(list, "all")
	}
	return strings.Join(list, " ")
}

// TestCacheMarks checks which parts of a prompt cache_control and prompt_cache_key mark, and that
// the words in a text do not.
func TestCacheMarks(t *testing.T) {
	const c = `"cache_control":{"type":"ephemeral"}`
	const tool = `{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}`
	const user = `{"role":"user","content":"hi"}`
	for _, x := range []struct{ path, body, want string }{
		{chatPath, `"messages":[{"role":"user","content":"say \"cache_control\""}]`, ""},
		{chatPath, `"messages":[{"role":"system","content":[{"type":"text","text":"S",` + c + `}]},` + user + `]`,
			"0:end"},
		{chatPath, `"messages":[{"role":"system","content":"S",` + c + `},` + user + `]`, "0:end"},
		{chatPath, `"messages":[` + user + `],"tools":[` + tool[:len(tool)-1] + `,` + c + `}]`, "tools"},
		{chatPath, `"messages":[{"role":"system","content":"S"},` + user + `],"prompt_cache_key":"k","tools":[` + tool +
			`]`, "0:end tools"},
		{chatPath, `"messages":[` + user + `],"prompt_cache_key":"k"`, ""},
		{chatPath, `"messages":[{"role":"system","content":"S"},` + user + `],"prompt_cache_key":""`, ""},
		{responsesPath, `"instructions":"S","input":"x","prompt_cache_key":"k"`, "0:end"},
		{responsesPath, `"instructions":"S","input":"x"`, ""},
		{messagesPath, `"messages":[{"role":"user","content":[{"type":"text","text":"a",` + c +
			`},{"type":"text","text":"b"}]}]`, "0:a"},
		{messagesPath, `"system":[{"type":"text","text":"S"},{"type":"text","text":"T",` + c +
			`},{"type":"text","text":"U"}],"messages":[` + user + `]`, "0:S\nT"},
		{messagesPath, `"system":[{"text":"x-anthropic-billing-header: a"},{"type":"text","text":"T",` + c +
			`},{"type":"text","text":"U"}],"messages":[` + user + `]`, "0:T"},
		{messagesPath, `"messages":[` + user + `],"tools":[{"name":"f","input_schema":{"type":"object"},` + c + `}]`,
			"tools"},
		{messagesPath, `"messages":[` + user + `],` + c, "all"},
		{messagesPath, `"messages":[` + user + `],"cache_control":null`, ""},
		{messagesPath, `"messages":[` + user + `,{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f",
			"input":{},` + c + `}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1",` + c +
			`,"content":"r"}]}]`, "1:end 2:end"},
	} {
		g := &fake{words: []string{"a"}}
		limit := ""
		if x.path == messagesPath {
			limit = `"max_tokens":5,`
		}
		w := post(t, New(g, Options{}), x.path, `{`+limit+x.body+`}`)
		if w.Code != 200 {
			t.Errorf("%s: %d %s", x.body, w.Code, w.Body)
			continue
		}
		if got := marksOf(g.last); got != x.want {
			t.Errorf("%s: marks %q, want %q", x.body, got, x.want)
		}
	}
}
