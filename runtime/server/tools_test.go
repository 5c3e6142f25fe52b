package server

import (
	"context"
	"slices"
	"strings"
	"testing"

	"sandwich/runtime/api"
)

// calling is a Generator that reasons, writes text and makes two calls.
type calling struct{ fake }

func (c *calling) Generate(_ context.Context, r api.Request, emit func(api.Token) error) (api.Result, error) {
	c.last = &r
	for _, t := range []api.Token{
		{Reasoning: "hm"}, {Text: "On it."}, {Calls: []api.CallDelta{{ID: "c0", Name: "clock"}}},
		{Calls: []api.CallDelta{{Arguments: `{"a":`}}}, {Calls: []api.CallDelta{{Arguments: `"\n"}`}}}, {},
		{Calls: []api.CallDelta{{Index: 1, ID: "c1", Name: "pick", Arguments: "{}"}}},
	} {
		if err := emit(t); err != nil {
			return api.Result{}, err
		}
	}
	return api.Result{Finish: api.FinishCalls, PromptTokens: 7, CachedTokens: 3, Tokens: 7}, nil
}

// Requests may choose among several tools; tools of unsupported types cannot be required.
func TestToolChoices(t *testing.T) {
	g := &calling{}
	s := New(g, Options{})
	const some = `{"mode":"required","tools":[{"type":"web_search"},{"type":"function","function":{"name":"pick"}}]}`
	const flat = `{"type":"allowed_tools","mode":"required","tools":[{"type":"web_search"},{"type":"function","name":"pick"}]}`
	for path, body := range map[string]string{
		chatPath:      chat(twoTools + `,"tool_choice":{"type":"allowed_tools","allowed_tools":` + some + `}`),
		responsesPath: `{"input":"x","tools":[{"type":"function","name":"pick"},{"type":"function","name":"f"}],"tool_choice":` + flat + `}`,
	} {
		if w := post(t, s, path, body); w.Code != 200 || g.last.ToolChoice.Mode != api.ToolsRequired ||
			!slices.Equal(g.last.ToolChoice.Names, []string{"pick"}) || len(g.last.Tools) != 2 {
			t.Errorf("%s: %d %s %+v", path, w.Code, w.Body, g.last)
		}
	}
	for choice, has := range map[string]string{
		`{"type":"web_search"}`:                    "unsupported type",
		`{"type":"function"}`:                      "lacks the name",
		`{"type":"allowed_tools","mode":"auto"}`:   "contains no function",
		`{"type":"allowed_tools","mode":"always"}`: "must be auto or required",
	} {
		if w := post(t, s, chatPath, chat(twoTools+`,"tool_choice":`+choice)); w.Code != 400 ||
			!strings.Contains(w.Body.String(), has) {
			t.Errorf("%s: %d %s", choice, w.Code, w.Body)
		}
	}
}

// TestStrictTools checks that strict reaches the Generator from all APIs.
func TestStrictTools(t *testing.T) {
	g := &calling{}
	s := New(g, Options{})
	for path, body := range map[string]string{
		chatPath:      chat(`"tools":[{"type":"function","function":{"name":"f","strict":STRICT}}]`),
		responsesPath: `{"input":"x","tools":[{"type":"function","name":"f","strict":STRICT}]}`,
		messagesPath: `{"max_tokens":9,"messages":[{"role":"user","content":"x"}],"tools":[{"name":"f","strict":STRICT,
			"input_schema":{"type":"object"}}]}`,
	} {
		for _, strict := range []string{"true", "false", "null"} {
			w := post(t, s, path, strings.ReplaceAll(body, "STRICT", strict))
			if w.Code != 200 || len(g.last.Tools) != 1 || g.last.Tools[0].Strict != (strict == "true") {
				t.Errorf("%s, strict %s: %d %s %+v", path, strict, w.Code, w.Body, g.last)
			}
		}
	}
}

const twoTools = `"tools":[{"type":"function","function":{"name":"clock"}},{"type":"function","function":{"name":"pick",` +
	`"parameters":{"type":"object","properties":{"z":{},"a":{}}}}}]`

func TestToolCalls(t *testing.T) {
	g := &calling{}
	v := parsed(t, post(t, New(g, Options{}), chatPath, chat(twoTools+`,"parallel_tool_calls":false`)).Body.Bytes())
	m := at(v, "choices", 0, "message")
	if at(m, "reasoning_content") != "hm" || at(m, "content") != "On it." || at(m, "tool_calls", 1, "id") != "c1" ||
		at(m, "tool_calls", 0, "function", "arguments") != `{"a":"\n"}` ||
		at(v, "choices", 0, "finish_reason") != "tool_calls" {
		t.Errorf("%v", v)
	}
	if r := g.last; len(r.Tools) != 2 || !r.OneCall ||
		r.Tools[1].Parameters != `{"type":"object","properties":{"z":{},"a":{}}}` {
		t.Errorf("%+v", r)
	}
	var names, arguments, ids string
	for _, c := range chunks(t, post(t, New(g, Options{}), chatPath, chat(twoTools+`,"stream":true`)).Body) {
		call := at(c, "choices", 0, "delta", "tool_calls", 0)
		for to, field := range map[*string]any{&names: at(call, "function", "name"), &ids: at(call, "id"),
			&arguments: at(call, "function", "arguments")} {
			if s, ok := field.(string); ok {
				*to += s
			}
		}
	}
	if names != "clockpick" || ids != "c0c1" || arguments != `{"a":"\n"}{}` {
		t.Errorf("streamed %q %q %q", names, ids, arguments)
	}
}
