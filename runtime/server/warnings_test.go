package server

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"sandwich/runtime/api"
	"sandwich/runtime/server/exchange"
)

// warner adds a warning before the first token and one after it, as rendering and generating may.
type warner struct{ fake }

func (g *warner) Generate(ctx context.Context, r api.Request, emit func(api.Token) error) (api.Result, error) {
	r.Warnings.Add("early: é")
	return g.fake.Generate(ctx, r, func(t api.Token) error {
		err := emit(t)
		r.Warnings.Add("late: \U0001F600")
		return err
	})
}

const wantWarnings = `["messages[0].content[0]: an image was left out; only text, tool calls and their results are ` +
	`used","early: \u00e9"]`

// TestWarningsOut checks where each API writes warnings, whole and streamed: those known at the
// time in the header and in the first object, all of them at the end.
func TestWarningsOut(t *testing.T) {
	const content = `"content":[{"type":"image_url"},{"type":"text","text":"t"}]`
	for _, c := range []struct {
		path, field string
		all, first  []any // paths of the list in the whole answer, and in the first object of the stream
		last        []any // and in the last object but skip
		skip        int
	}{
		{chatPath, "messages", []any{"warnings"}, []any{"warnings"}, []any{"warnings"}, 0},
		{messagesPath, "messages", []any{"warnings"}, []any{"message", "warnings"}, []any{"warnings"}, 1},
		{responsesPath, "input", []any{"warnings"}, []any{"response", "warnings"}, []any{"response", "warnings"}, 0},
		{"/api/chat", "messages", []any{"warnings"}, nil, []any{"warnings"}, 0},
	} {
		body := `{"` + c.field + `":[{"role":"user",` + content + `}]`
		w := post(t, New(&warner{fake{words: []string{"a", "b"}}}, Options{}), c.path, body+`,"stream":false}`)
		if list, _ := at(parsed(t, w.Body.Bytes()), c.all...).([]any); len(list) != 3 || list[2] != "late: \U0001F600" {
			t.Errorf("%s: %s", c.path, w.Body)
		}
		want := strings.ReplaceAll(wantWarnings, "messages[", c.field+"[")
		if got := w.Header().Get(exchange.WarningsHeader); got != strings.TrimSuffix(want, "]")+`,"late: \ud83d\ude00"]` {
			t.Errorf("%s: header %s", c.path, got)
		}
		w = post(t, New(&warner{fake{words: []string{"a", "b"}}}, Options{}), c.path, body+`,"stream":true}`)
		if got := w.Header().Get(exchange.WarningsHeader); got != want {
			t.Errorf("%s, streamed: header %s", c.path, got)
		}
		all := streamed(t, w.Body.String())
		if list, _ := at(all[0], c.first...).([]any); c.first != nil && len(list) != 2 {
			t.Errorf("%s, streamed: first %v", c.path, all[0])
		}
		if list, _ := at(all[len(all)-1-c.skip], c.last...).([]any); len(list) != 3 {
			t.Errorf("%s, streamed: last %v", c.path, all)
		}
		n := strings.Count(w.Body.String(), `"warnings"`)
		if c.path != responsesPath && n != len(all[:1])+map[bool]int{true: 1, false: 0}[c.first != nil] {
			t.Errorf("%s, streamed: warnings are written %d times", c.path, n)
		}
	}
}

// streamed returns the JSON objects of a stream of events or lines.
func streamed(t *testing.T, text string) (out []any) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(strings.TrimPrefix(line, "data: "))
		var v any
		if strings.HasPrefix(line, "{") {
			if err := json.Unmarshal([]byte(line), &v); err != nil {
				t.Fatal(err)
			}
			out = append(out, v)
		}
	}
	return out
}

// TestNoWarnings checks that an answer without warnings has neither field nor header, and that each
// of several ending choices lists the later ones.
func TestNoWarnings(t *testing.T) {
	for _, path := range []string{chatPath, messagesPath, "/api/chat"} {
		w := post(t, New(&fake{words: []string{"a"}}, Options{}), path, chatOnce)
		if strings.Contains(w.Body.String(), "warnings") || w.Header()[exchange.WarningsHeader] != nil {
			t.Errorf("%s: %v %s", path, w.Header(), w.Body)
		}
	}
	w := post(t, New(&warner{fake{words: []string{"a"}}}, Options{}), "/v1/completions", `{"prompt":"x","n":2,"stream":true}`)
	first := streamed(t, w.Body.String())[0]
	if list, _ := at(first, "warnings").([]any); len(list) != 1 || strings.Count(w.Body.String(), "late: ") != 1 {
		t.Errorf("%s", w.Body)
	}
}

// TestWarningsWithoutAnswer checks the endpoints that generate no answer.
func TestWarningsWithoutAnswer(t *testing.T) {
	for _, path := range []string{"/apply-template", "/tokenize", messagesPath + "/count_tokens"} {
		w := post(t, New(&fake{}, Options{}), path, messagesOf(`{"role":"king","content":"x"}`))
		if list, _ := at(parsed(t, w.Body.Bytes()), "warnings").([]any); w.Code != 200 || len(list) != 1 ||
			!strings.Contains(w.Header().Get(exchange.WarningsHeader), `["messages[0].role: \"king\"`) {
			t.Errorf("%s: %d %v %s", path, w.Code, w.Header(), w.Body)
		}
	}
}
