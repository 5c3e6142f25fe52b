package server

import (
	"context"
	"testing"

	"sandwich/runtime/api"
)

// calling is a Generator that thinks, talks and calls twice.
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
