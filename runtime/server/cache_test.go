package server

import (
	"context"
	"log/slog"
	"slices"
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

// keeper records whether prompts are to be stored.
type keeper struct {
	fake
	keep []bool
}

func (k *keeper) Generate(ctx context.Context, r api.Request, emit func(api.Token) error) (api.Result, error) {
	k.keep = append(k.keep, r.Keep)
	return k.fake.Generate(ctx, r, emit)
}

// TestCacheControlKeepsPrompts checks that a request with a field cache_control stores its prompt,
// and that the word in a text does not.
func TestCacheControlKeepsPrompts(t *testing.T) {
	k := &keeper{fake: fake{words: []string{"a"}}}
	s := New(k, Options{})
	post(t, s, chatPath, `{"messages":[{"role":"user","content":"say \"cache_control\""}]}`)
	post(t, s, messagesPath, `{"max_tokens":5,"messages":[{"role":"user","content":[{"type":"text","text":"a",
		"cache_control":{"type":"ephemeral"}}]}]}`)
	if !slices.Equal(k.keep, []bool{false, true}) {
		t.Errorf("prompts are stored: %v", k.keep)
	}
}
