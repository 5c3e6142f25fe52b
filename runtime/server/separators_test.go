package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sandwich/runtime/api"
	"sandwich/runtime/server/generation"
	"sandwich/runtime/server/jsontext"
)

const separators = "a\u2028b\u2029c\u0085d"

// separating is a Generator whose texts contain Unicode line separators.
type separating struct{ fake }

func (g *separating) Generate(_ context.Context, r api.Request, emit func(api.Token) error) (api.Result, error) {
	tokens := []api.Token{{Text: separators}}
	tokens[0].Piece = separators
	tokens[0].Top = []api.TokenLogprob{{Piece: separators}}
	if r.Chat() {
		quoted := `{"x":"` + separators + `"}`
		tokens = append(tokens, api.Token{Reasoning: separators},
			api.Token{Calls: []api.CallDelta{{ID: "c" + separators, Name: separators, Arguments: quoted}}})
	}
	for _, t := range tokens {
		if err := emit(t); err != nil {
			return api.Result{}, err
		}
	}
	return api.Result{Finish: api.FinishStop, StopString: separators}, nil
}

func (g *separating) Render(context.Context, *api.Request) (string, error) { return separators, nil }
func (g *separating) Decode(context.Context, []int32) (string, error)      { return separators, nil }
func (g *separating) Piece(int32) string                                   { return separators }

func (g *separating) Model() generation.ModelInfo {
	m := g.fake.Model()
	m.Template, m.BOS, m.Arch = separators, separators, separators
	return m
}

// TestLineSeparators checks that answers and streams escape all Unicode line separators and keep
// the meaning.
func TestLineSeparators(t *testing.T) {
	s := New(&separating{}, Options{})
	const chatBody = `{%s,"logprobs":true,"top_logprobs":1,` + hiMessages + `}`
	for path, body := range map[string]string{
		chatPath:          chatBody,
		"/v1/completions": `{%s,"prompt":"x","logprobs":1,"echo":true}`,
		"/v1/messages":    `{%s,"max_tokens":9,` + hiMessages + `}`,
		responsesPath: `{%s,"input":"` + separators + `","metadata":{"k` + separators + `":"` + separators +
			`"},"top_logprobs":1}`,
		"/api/chat":         chatBody,
		"/api/generate":     `{%s,"prompt":"x","logprobs":true,"raw":true}`,
		"/tokenize":         `{%s,"content":"x","with_pieces":true,"return_token_strs":true}`,
		"/detokenize":       `{%s,"tokens":[1]}`,
		"/apply-template":   `{%s,` + hiMessages + `}`,
		"/api/show":         `{%s,"model":"m"}`,
		chatPath + "?error": `{%s,"tool_choice":"` + separators + `",` + hiMessages + `}`,
	} {
		for _, stream := range []bool{false, true} {
			w := post(t, s, path, fmt.Sprintf(body, fmt.Sprintf(`"stream":%v`, stream)))
			text := w.Body.String()
			if strings.ContainsAny(text, "\u2028\u2029\u0085") {
				t.Errorf("%s, stream %v: a raw separator in %q", path, stream, text)
			}
			if w.Code == 200 && !strings.Contains(text, `a\u2028b\u2029c\u0085d`) {
				t.Errorf("%s, stream %v: no escapes in %s", path, stream, text)
			}
			if !stream && !json.Valid([]byte(text)) {
				t.Errorf("%s: not JSON: %s", path, text)
			}
		}
	}
	for _, path := range []string{"/props", "/api/tags", "/api/ps", "/v1/models"} {
		if w := visit(s, "GET", path); w.Code != 200 || strings.ContainsAny(w.Body.String(), "\u2028\u2029\u0085") {
			t.Errorf("%s: status %d %q", path, w.Code, w.Body)
		}
	}
}

func TestEscapeSeparators(t *testing.T) {
	for text, want := range map[string]string{
		``: ``, `{"a":"é€\u2028"}`: `{"a":"é€\u2028"}`, "\"\u0085\u0085\"": `"\u0085\u0085"`,
		"{\"\u2029\":\"\\\\\u2028\"}": `{"\u2029":"\\\u2028"}`,
	} {
		got := string(jsontext.EscapeSeparators([]byte(text)))
		var before, after any
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if text != "" && (json.Unmarshal([]byte(text), &before) != nil || json.Unmarshal([]byte(got), &after) != nil ||
			fmt.Sprint(before) != fmt.Sprint(after)) {
			t.Errorf("%q: means %v, want %v", text, after, before)
		}
	}
	if got, want := string(jsontext.AppendString(nil, "x\u0085é\u2028\u2029\u2030")), `"x\u0085é\u2028\u2029‰"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
