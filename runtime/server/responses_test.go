package server

import (
	"bufio"
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
		!strings.Contains(w.Body.String(), `tools[2], \"web_search\", is not run here`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	m := g.last.Messages
	if len(m) != 4 || m[0].Role != "system" || m[1].Content != "Hi" || m[2].Calls[0].Name != "pick" ||
		m[3].CallID != "a" || m[3].Name != "pick" || g.last.MaxTokens != 5 || len(g.last.Tools) != 2 {
		t.Errorf("%+v", g.last)
	}
}

// Events are numbered from 0, deltas add up to what is done, and the last event has the whole.
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
		{`{}`, "input"}, {`{"input":[]}`, "input"}, {`{"input":[{"type":"item_reference","id":"z"}]}`, "input[0].id"},
		{`{"input":[{"type":"item"}]}`, "input[0].type"}, {`{"input":"x","conversation":"c"}`, "conversation"},
		{`{"input":"x","prompt":{"id":"p"}}`, "prompt"},
		{`{"input":[{"type":"function_call","call_id":"a","arguments":"{}"}]}`, "input[0].name"},
		{`{"input":"x","previous_response_id":"resp_1"}`, "previous_response_id"},
		{`{"input":"x","background":true}`, "background"},
		{`{"input":[{"type":"function_call","call_id":"a","name":"f","arguments":"{"}]}`, "input[0].arguments"},
		{`{"input":[{"role":"user","content":"x"},{"type":"function_call_output","call_id":"z","output":"x"}]}`,
			"input[1].call_id"},
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
