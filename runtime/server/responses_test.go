package server

import (
	"bufio"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"sandwich/runtime/api"
)

const responsesPath = "/v1/responses"

func TestResponses(t *testing.T) {
	g := &calling{}
	s := New(g, Options{})
	w := post(t, s, "/responses", `{"model":"m","instructions":"Be brief","store":false,"include":[],
		"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]},{"type":"reasoning"},
			{"type":"function_call","call_id":"a","name":"pick","arguments":"{}"},
			{"type":"function_call_output","call_id":"a","output":"3"}],
		"tools":[{"type":"function","name":"pick"},{"type":"custom","name":"clock"},{"type":"web_search"}],
		"max_output_tokens":5,"text":{"format":{"type":"text"}}}`)
	v := parsed(t, w.Body.Bytes())
	if at(v, "status") != "completed" || at(v, "output", 0, "type") != "reasoning" ||
		at(v, "output", 1, "content", 0, "text") != "On it." || at(v, "output", 2, "type") != "custom_tool_call" ||
		at(v, "output", 3, "call_id") != "c1" || at(v, "usage", "input_tokens_details", "cached_tokens") != 3.0 ||
		!strings.Contains(w.Body.String(), `tools[2]: the type \"web_search\" is not`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	m := g.last.Messages
	if len(m) != 4 || m[0].Role != "system" || m[1].Content != "Hi" || m[2].Calls[0].Name != "pick" ||
		m[3].CallID != "a" || m[3].Name != "pick" || g.last.MaxTokens != 5 || len(g.last.Tools) != 2 {
		t.Errorf("%+v", g.last)
	}
}

// Events are numbered from 0, deltas add up to the final item, and the last event has the whole
// answer.
func TestResponsesStream(t *testing.T) {
	w := post(t, New(&calling{}, Options{}), responsesPath, `{"input":"Hi","stream":true,
		"tools":[{"type":"function","name":"pick"},{"type":"function","name":"clock"}]}`)
	var kinds []string
	deltas := map[string]string{}
	lines := bufio.NewScanner(w.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e map[string]any
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatal(err)
		}
		kind, _ := e["type"].(string)
		if e["sequence_number"] != float64(len(kinds)) {
			t.Errorf("event %d: %s", len(kinds), data)
		}
		kinds = append(kinds, kind)
		id, _ := e["item_id"].(string)
		if d, ok := e["delta"].(string); ok {
			deltas[id] += d
		}
		if kind == "response.function_call_arguments.done" && e["arguments"] != deltas[id] {
			t.Errorf("%q, done %v", deltas[id], e["arguments"])
		}
		if kind == "response.completed" && at(e, "response", "output", 3, "arguments") != "{}" {
			t.Errorf("the whole: %s", data)
		}
	}
	want := "response.created response.in_progress response.output_item.added response.content_part.added " +
		"response.reasoning_text.delta response.reasoning_text.done response.content_part.done " +
		"response.output_item.done response.output_item.added response.content_part.added response.output_text.delta " +
		"response.output_text.done response.content_part.done response.output_item.done response.output_item.added " +
		"response.function_call_arguments.delta response.function_call_arguments.delta " +
		"response.function_call_arguments.done response.output_item.done response.output_item.added " +
		"response.function_call_arguments.delta response.function_call_arguments.done response.output_item.done " +
		"response.completed"
	if got := strings.Join(kinds, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestResponsesRefused(t *testing.T) {
	s := New(&calling{}, Options{})
	for _, c := range []struct{ body, param string }{
		{`{}`, "input"}, {`{"input":[]}`, "input"}, {`{"input":[{"type":"item_reference","id":"z"}]}`, "input"},
		{`{"input":[{"type":"item"}]}`, "input"}, {`{"input":"x","conversation":"c"}`, "conversation"},
		{`{"input":"x","prompt":{"id":"p"}}`, "prompt"},
		{`{"input":[{"type":"function_call","call_id":"a","arguments":"{}"}]}`, "input"},
		{`{"input":"x","previous_response_id":"resp_1"}`, "previous_response_id"},
		{`{"input":"x","background":true}`, "background"},
		{`{"input":"x","tools":[{"type":"web_search"}],"tool_choice":"required"}`, "tool_choice"},
		{`{"input":"x","tools":[{"type":"function","name":"f"},{"type":"function","name":"f"}]}`, "tools[1]"},
	} {
		w := post(t, s, responsesPath, c.body)
		if w.Code != 400 || at(parsed(t, w.Body.Bytes()), "error", "param") != c.param {
			t.Errorf("%s: %d %s", c.body, w.Code, w.Body)
		}
	}
	full := New(&fake{err: &api.QueueFullError{}}, Options{})
	if w := post(t, full, responsesPath, `{"input":"x","stream":true}`); w.Code != 429 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Tools of a namespace are called by a qualified name, which the answer and the history split
// again.
func TestResponsesNamespaces(t *testing.T) {
	g := &calling{}
	const tools = `"tools":[{"type":"namespace","name":"crm","description":"d","tools":[{"type":"function","name":"pick",
		"parameters":{"type":"object"}},{"type":"custom","name":"note"},{"type":"web_search"}]},
		{"type":"function","name":"pick"}]`
	w := post(t, New(g, Options{}), responsesPath, `{"input":[{"role":"user","content":"x"},
		{"type":"function_call","call_id":"a","name":"pick","namespace":"crm","arguments":"{}"},
		{"type":"function_call_output","call_id":"a","output":"3"}],"tool_choice":{"type":"function","namespace":"crm",
		"name":"pick"},`+tools+`}`)
	if w.Code != 200 || !strings.Contains(w.Body.String(), `tools[0].tools[2]: the type \"web_search\" is not`) {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	r := g.last
	if len(r.Tools) != 3 || r.Tools[0].Name != "crm__pick" || r.Tools[1].Name != "crm__note" ||
		r.Tools[2].Name != "pick" ||
		r.Messages[1].Calls[0].Name != "crm__pick" || r.ToolChoice.Names[0] != "crm__pick" {
		t.Errorf("%+v", r)
	}
	spaces := &spacedCalls{}
	w = post(t, New(spaces, Options{}), responsesPath, `{"input":"x",`+tools+`}`)
	v := parsed(t, w.Body.Bytes())
	if at(v, "output", 0, "name") != "pick" || at(v, "output", 0, "namespace") != "crm" ||
		at(v, "output", 1, "type") != "custom_tool_call" || at(v, "output", 1, "namespace") != "crm" ||
		at(v, "output", 2, "name") != "pick" || at(v, "output", 2, "namespace") != nil {
		t.Errorf("%s", w.Body)
	}
	for body, param := range map[string]string{
		`{"type":"namespace","tools":[]}`: "tools[0].name",
		`{"type":"namespace","name":"a","tools":[{"type":"function","name":"b"}]},{"type":"function","name":"a__b"}`: "tools[1]",
		`{"type":"namespace","name":"a","tools":{}}`:                                                                 "tools[0].tools",
	} {
		w := post(t, New(g, Options{}), responsesPath, `{"input":"x","tools":[`+body+`]}`)
		if w.Code != 400 || at(parsed(t, w.Body.Bytes()), "error", "param") != param {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
}

// spacedCalls calls each of the tools above.
type spacedCalls struct{ fake }

func (c *spacedCalls) Generate(_ context.Context, _ api.Request, emit func(api.Token) error) (api.Result, error) {
	for i, name := range []string{"crm__pick", "crm__note", "pick"} {
		d := api.CallDelta{Index: i, ID: "c", Name: name, Arguments: `{"input":"x"}`}
		if err := emit(api.Token{Calls: []api.CallDelta{d}}); err != nil {
			return api.Result{}, err
		}
	}
	return api.Result{Finish: api.FinishCalls}, nil
}

// Log probabilities accompany the text of their tokens, in events and in the whole answer.
func TestResponsesLogprobs(t *testing.T) {
	g := &fake{words: []string{"On", " it", "."}}
	const body = `{"input":"x","include":["message.output_text.logprobs"],"top_logprobs":2`
	v := parsed(t, post(t, New(g, Options{}), responsesPath, body+`}`).Body.Bytes())
	probs, _ := at(v, "output", 0, "content", 0, "logprobs").([]any)
	if len(probs) != 3 || at(probs, 1, "token") != " it" || at(probs, 1, "logprob") != -0.5 ||
		at(probs, 1, "top_logprobs", 1, "token") != " itx" {
		t.Errorf("%v", v)
	}
	w := post(t, New(g, Options{}), responsesPath, body+`,"stream":true}`)
	met := 0
	for line := range strings.Lines(w.Body.String()) {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		e := parsed(t, []byte(data))
		list, _ := at(e, "logprobs").([]any)
		switch at(e, "type") {
		case "response.output_text.delta":
			if met++; len(list) != 1 || at(list, 0, "token") != at(e, "delta") {
				t.Errorf("%s", data)
			}
		case "response.output_text.done":
			if len(list) != 3 {
				t.Errorf("%s", data)
			}
		}
	}
	if met != 3 {
		t.Errorf("%d deltas", met)
	}
	none := parsed(t, post(t, New(g, Options{}), responsesPath, `{"input":"x"}`).Body.Bytes())
	if probs, _ := at(none, "output", 0, "content", 0, "logprobs").([]any); probs == nil || len(probs) > 0 {
		t.Errorf("%v", none)
	}
}
