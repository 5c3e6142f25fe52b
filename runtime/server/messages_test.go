package server

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"sandwich/runtime/api"
)

const messagesPath = "/v1/messages"

const twoSchemas = `"tools":[{"name":"clock","input_schema":{"type":"object"}},{"type":"custom","name":"pick"},` +
	`{"type":"web_search_20250305","name":"web_search"}]`

func TestMessages(t *testing.T) {
	g := &calling{}
	w := post(t, New(g, Options{}), "/messages?beta=true", `{"model":"m","max_tokens":5,
		"system":[{"type":"text","text":"Be","cache_control":{"type":"ephemeral"}},{"type":"text","text":"brief"}],
		"messages":[{"role":"user","content":"Hi"},
			{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":""},
				{"type":"redacted_thinking","data":"x"},{"type":"text","text":"On it"},
				{"type":"tool_use","id":"a","name":"pick","input":{"z":1, "b":2}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"3"}]},
				{"type":"text","text":"go"},{"type":"text","text":"on"}]}],
		"thinking":{"type":"enabled","budget_tokens":1024},"metadata":{"user_id":"u"},"stop_sequences":["END"],
		"tool_choice":{"type":"any","disable_parallel_tool_use":true},`+twoSchemas+`}`)
	v := parsed(t, w.Body.Bytes())
	if at(v, "type") != "message" || at(v, "role") != "assistant" || at(v, "content", 0, "thinking") != "hm" ||
		at(v, "content", 1, "text") != "On it." || at(v, "content", 2, "input", "a") != "\n" ||
		at(v, "content", 3, "id") != "c1" || at(v, "stop_reason") != "tool_use" || at(v, "stop_sequence") != nil ||
		at(v, "usage", "input_tokens") != 4.0 || at(v, "usage", "cache_read_input_tokens") != 3.0 ||
		at(v, "usage", "output_tokens") != 7.0 ||
		at(v, "warnings", 0) != `tools[2]: the type "web_search_20250305" is not supported; the tool was left out` {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	r, m := g.last, g.last.Messages
	if len(m) != 5 || m[0].Content != "Be\nbrief" || m[2].Reasoning != "hm" || m[2].Content != "On it" ||
		m[2].Calls[0].Arguments != `{"z":1, "b":2}` || m[3].Role != "tool" || m[3].Name != "pick" ||
		m[3].Content != "3" || m[4].Content != "go\non" || r.MaxTokens != 5 || !slices.Equal(r.Stop, []string{"END"}) ||
		len(r.Tools) != 2 || r.ToolChoice.Mode != api.ToolsRequired || !r.OneCall {
		t.Errorf("%+v", r)
	}
}

// events reads a whole stream in Anthropic's format, in which each event states its type twice.
func events(t *testing.T, text string) (out []map[string]any) {
	t.Helper()
	for e := range strings.SplitSeq(strings.TrimSuffix(text, "\n\n"), "\n\n") {
		head, data, ok := strings.Cut(e, "\ndata: ")
		var m map[string]any
		if err := json.Unmarshal([]byte(data), &m); err != nil || !ok || "event: "+m["type"].(string) != head {
			t.Fatalf("%v in %s", err, e)
		}
		out = append(out, m)
	}
	return out
}

// Blocks are numbered from 0, one is open at a time, deltas add up, and the message ends with its
// stop reason.
func TestMessagesStream(t *testing.T) {
	g := &calling{}
	w := post(t, New(g, Options{}), messagesPath,
		`{"messages":[{"role":"user","content":"Hello!!"}],"stream":true,`+twoSchemas+`}`)
	var shape []string
	text := map[any]string{}
	for _, e := range events(t, w.Body.String()) {
		kind := strings.TrimPrefix(e["type"].(string), "content_block_")
		if i, ok := e["index"].(float64); ok {
			kind += string(rune('0' + int(i)))
		}
		if b := at(e, "content_block", "type"); b != nil {
			kind += "=" + b.(string)
		}
		shape = append(shape, kind)
		for _, field := range []string{"text", "thinking", "partial_json"} {
			d, _ := at(e, "delta", field).(string)
			text[e["index"]] += d
		}
		if kind == "message_start" && (at(e, "message", "usage", "input_tokens") != 7.0 ||
			len(at(e, "message", "content").([]any)) != 0 || at(e, "message", "warnings", 0) == nil) ||
			kind == "message_delta" && (at(e, "delta", "stop_reason") != "tool_use" ||
				at(e, "usage", "output_tokens") != 7.0) {
			t.Errorf("%v", e)
		}
	}
	const want = "message_start start0=thinking delta0 stop0 start1=text delta1 stop1 start2=tool_use delta2 delta2 " +
		"stop2 start3=tool_use delta3 stop3 message_delta message_stop"
	if got := strings.Join(shape, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if text[0.0] != "hm" || text[1.0] != "On it." || text[2.0] != `{"a":"\n"}` || text[3.0] != "{}" {
		t.Errorf("%q", text)
	}
}

// An answer states its stop reason, and continues a last assistant message.
func TestMessagesEnds(t *testing.T) {
	f := &fake{words: []string{"one", " two"}}
	s := New(f, Options{})
	const body = `{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"zero "}]`
	for fields, want := range map[string]string{"": "end_turn", `,"max_tokens":1`: "max_tokens"} {
		v := parsed(t, post(t, s, messagesPath, body+fields+"}").Body.Bytes())
		if at(v, "stop_reason") != want || !f.request().Continue {
			t.Errorf("%s: %v, continues %v", fields, v, f.request().Continue)
		}
	}
}

func TestCountTokens(t *testing.T) {
	g := &calling{}
	s := New(g, Options{})
	const path = messagesPath + "/count_tokens"
	if w := post(t, s, path, `{"messages":[{"role":"user","content":"Hello"}],"system":"Hi"}`); w.Code != 200 ||
		w.Body.String() != `{"input_tokens":7}` || g.last != nil {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	s = New(&fake{err: &api.TooLongError{PromptTokens: 9, Context: 5}}, Options{})
	w := post(t, s, path, `{"messages":[{"role":"user","content":"Hello"}]}`)
	if w.Code != 400 || !strings.Contains(w.Body.String(), "prompt is too long: 9 tokens > 5 maximum") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestMessagesRefused(t *testing.T) {
	s := New(&calling{}, Options{})
	user := func(content string) string { return `{"messages":[{"role":"user","content":` + content + `}]` }
	for _, c := range []struct{ body, has string }{
		{`{`, "not valid JSON"}, {`{}`, "messages is missing"}, {`{"messages":[]}`, "messages is empty"},
		{`{"messages":[1]}`, "messages[0] must be an object"}, {`{"messages":[{}]}`, "messages[0].content is missing"},
		{`{"messages":[{"role":"user"}]}`, "messages[0].content is missing"},
		{user(`[{"type":"image","source":{}}]`) + "}", `messages[0].content[0].type is "image"`},
		{user(`[{"type":"tool_use","id":"a","name":"f","input":{}}]`) + "}", "messages[0].content[0].type"},
		{user(`[7]`) + "}", "content[0] must be an object"}, {user(`[{"type":"text"}]`) + "}", "text is missing"},
		{user(`"x"`) + `,"system":7}`, "system must be a string"},
		{user(`"x"`) + `,"stop_sequences":[""]}`, "stop_sequences must not contain"},
		{user(`"x"`) + `,"tool_choice":{"type":"all"}}`, "tool_choice.type"},
		{user(`"x"`) + `,"tool_choice":{"type":"tool"}}`, "tool_choice.name is missing"},
		{user(`"x"`) + `,"tool_choice":{"type":"any"}}`, "tool_choice"},
		{user(`"x"`) + `,"tools":[{"name":"f"},{"name":"f"}]}`, "tools[1]"},
		{user(`"x"`) + `,"mcp_servers":[{"name":"f"}]}`, "mcp_servers"},
		{user(`"x"`) + `,"max_token":5}`, "did you mean max_tokens"},
	} {
		w := post(t, s, messagesPath, c.body)
		v := parsed(t, w.Body.Bytes())
		if m, _ := at(v, "error", "message").(string); w.Code != 400 || at(v, "type") != "error" ||
			at(v, "error", "type") != "invalid_request_error" || !strings.Contains(m, c.has) {
			t.Errorf("%s: %d %s", c.body, w.Code, w.Body)
		}
	}
	hi := user(`"x"`) + `,"stream":true}`
	for kind, err := range map[string]error{
		"rate_limit_error": &api.QueueFullError{}, "overloaded_error": api.ErrClosed,
		"api_error": http.ErrBodyNotAllowed,
	} {
		w := post(t, New(&fake{err: err}, Options{}), messagesPath, hi)
		if at(parsed(t, w.Body.Bytes()), "error", "type") != kind {
			t.Errorf("%v: %d %s", err, w.Code, w.Body)
		}
	}
	w := post(t, New(&fake{words: []string{"a"}, endErr: api.ErrClosed}, Options{}), messagesPath, hi)
	if all := events(t, w.Body.String()); at(all[len(all)-1], "error", "type") != "overloaded_error" {
		t.Errorf("%s", w.Body)
	}
}

// Both headers may hold a key. Errors before the body is read have the format of their API.
func TestKeyHeaders(t *testing.T) {
	s := New(&calling{}, Options{APIKeys: []string{"ours"}})
	for _, c := range []struct {
		header, value string
		want          int
	}{
		{"X-Api-Key", "ours", 200}, {"Authorization", "Bearer ours", 200}, {"X-Api-Key", "theirs", 401},
		{"X-Api-Key", "", 401}, {"Content-Type", "text/plain", 401},
	} {
		w := visit(s, "POST", messagesPath, c.header, c.value)
		v := parsed(t, w.Body.Bytes())
		if kind := at(v, "error", "type"); w.Code != c.want || (at(v, "type") == "error") != (c.want != 200) ||
			(kind == "authentication_error") != (c.want == 401) {
			t.Errorf("%s %q: %d %s", c.header, c.value, w.Code, w.Body)
		}
	}
	// An empty header is not a key, and the two headers are not combined.
	if w := visit(s, "GET", "/v1/models", "Authorization", "Bearer theirs", "X-Api-Key", "ours"); w.Code != 401 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := visit(s, "GET", "/v1/nothing", "X-Api-Key", "ours"); w.Code != 404 ||
		!strings.Contains(w.Body.String(), "/v1/messages/count_tokens, ") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
