package server

import (
	"fmt"
	"strings"
	"testing"

	"sandwich/runtime/server/conversation"
)

// understood sends a body and returns the messages that the Generator received, one per line, and
// the warnings.
func understood(t *testing.T, path, body string) (said, warnings string) {
	t.Helper()
	f := &fake{words: []string{"x"}}
	w := post(t, New(f, Options{}), path, strings.TrimSuffix(body, "}")+`,"stream":false}`)
	if w.Code != 200 {
		t.Errorf("%s: %d %s", body, w.Code, w.Body)
		return "", ""
	}
	for _, m := range f.request().Messages {
		said += m.Role + " " + m.Content
		for _, c := range m.Calls {
			said += fmt.Sprintf(" %s=%s(%s)", c.ID, c.Name, c.Arguments)
		}
		if m.Role == "tool" {
			said += " of " + m.CallID + "=" + m.Name
		}
		said += "\n"
	}
	list, _ := at(parsed(t, w.Body.Bytes()), "warnings").([]any)
	for _, w := range list {
		warnings += w.(string) + "\n"
	}
	return said, warnings
}

// messagesOf returns a body with messages.
func messagesOf(list string) string { return `{"messages":[` + list + `]}` }

const orphan = "[result of the call \"gone\", which is not in this conversation]\n"

// cutCall returns what a call of f with truncated arguments becomes.
func cutCall(id, text string) string {
	return id + `=f({"cut_arguments":` + text + `,"note":"these arguments were cut off or are not valid; ` +
		`the call was not run as it stands here"})`
}

// TestHistoryKept sends conversations with unusable parts: the rest is used, and a warning names
// the path of each part.
func TestHistoryKept(t *testing.T) {
	const user, chatCall = `{"role":"user","content":"a"}`, `{"role":"assistant","content":null,"tool_calls":[{"id":"c",` +
		`"function":{"name":"f","arguments":%s}}]},{"role":"tool","tool_call_id":"c","content":"r"}`
	call := func(arguments string) string { return user + "," + fmt.Sprintf(chatCall, arguments) }
	for _, c := range []struct{ path, body, said, warning string }{
		// Truncated calls.
		{chatPath, messagesOf(call(`"{\"v\": \"abc"`)), "user a\nassistant  " + cutCall("c", `"{\"v\": \"abc"`) +
			"\ntool r of c=f\n", "messages[1].tool_calls[0].function.arguments: "},
		{chatPath, messagesOf(call(`"[1]"`)), "user a\nassistant  " + cutCall("c", `"[1]"`) + "\ntool r of c=f\n",
			"messages[1].tool_calls[0].function.arguments: "},
		{chatPath, messagesOf(call(`" "`)), "user a\nassistant  c=f({})\ntool r of c=f\n", ""},
		{chatPath, messagesOf(call(`{"v":1}`)), "user a\nassistant  c=f({\"v\":1})\ntool r of c=f\n", ""},
		{messagesPath, messagesOf(user + `,{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f",
			"input":"{\"v\":"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c"}]}`),
			"user a\nassistant  " + cutCall("c", `"{\"v\":"`) + "\ntool  of c=f\n", "messages[1].content[0].input: "},
		{responsesPath, `{"input":[{"role":"user","content":"a"},{"type":"function_call","status":"incomplete",
			"call_id":"c","name":"f","arguments":"{\"v\":"},{"type":"function_call_output","call_id":"c","output":"r"}]}`,
			"user a\nassistant  " + cutCall("c", `"{\"v\":"`) + "\ntool r of c=f\n", "input[1].arguments: "},
		{"/api/chat", messagesOf(user + `,{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f",
			"arguments":"{x"}}]},{"role":"tool","tool_name":"f","content":"r"}`),
			"user a\nassistant  " + cutCall("000000001", `"{x"`) + "\ntool r of 000000001=f\n",
			"messages[1].tool_calls[0].function.arguments: "},

		// Results without their call.
		{chatPath, messagesOf(user + `,{"role":"tool","tool_call_id":"gone","content":"r"}`),
			"user a\nuser " + orphan + "r\n", "messages[1].tool_call_id: "},
		{chatPath, messagesOf(user + `,{"role":"function","name":"g","content":"r"}`),
			"user a\nuser [result of a call of \"g\", which is not in this conversation]\nr\n",
			"messages[1].tool_call_id: "},
		{messagesPath, messagesOf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"gone",
			"content":[{"type":"text","text":"r"}]},{"type":"text","text":"go on"}]}`),
			"user " + orphan + "r\nuser go on\n", "messages[0].content[0].tool_use_id: "},
		{responsesPath, `{"input":[{"type":"function_call_output","call_id":"gone","output":"r"},
			{"role":"user","content":"a"}]}`, "user " + orphan + "r\nuser a\n", "input[0].call_id: "},
		{"/api/chat", messagesOf(`{"role":"tool","tool_call_id":"gone","content":"r"},` + user),
			"user " + orphan + "r\nuser a\n", "messages[0].tool_call_id: "},

		// Results that do not directly follow their call.
		{chatPath, messagesOf(user + `,{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f"}},{"id":"d",
			"function":{"name":"g"}}]},{"role":"tool","tool_call_id":"c","content":"1"},{"role":"assistant","content":"b"},
			{"role":"tool","tool_call_id":"d","content":"2"},{"role":"tool","tool_call_id":"c","content":"3"},` + user),
			"user a\nassistant  c=f({}) d=g({})\ntool 1 of c=f\ntool 2 of d=g\ntool 3 of c=f\nassistant b\nuser a\n",
			"messages[4].tool_call_id: the result does not\nmessages[5].tool_call_id: the result does not follow"},
		{responsesPath, `{"input":[{"type":"function_call","call_id":"c","name":"f"},{"role":"user","content":"a"},
			{"type":"function_call_output","call_id":"c","output":"1"}]}`, "assistant  c=f({})\ntool 1 of c=f\nuser a\n",
			"input[2].call_id: the result does not follow its call"},

		// Missing and repeated ids, and function_call of older clients.
		{chatPath, messagesOf(user + `,{"role":"assistant","tool_calls":[{"function":{"name":"f"}},{"id":"","function":
			{"name":"g"}}]},{"role":"tool","content":"1"},{"role":"tool","name":"g","content":"2"}`),
			"user a\nassistant  000000001=f({}) 000000002=g({})\ntool 1 of 000000001=f\ntool 2 of 000000002=g\n", ""},
		{chatPath, messagesOf(user + `,{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f"}},{"id":"c",
			"function":{"name":"g"}}]},{"role":"tool","tool_call_id":"c","content":"1"},
			{"role":"tool","tool_call_id":"c","content":"2"},{"role":"tool","tool_call_id":"c","content":"3"}`),
			"user a\nassistant  c=f({}) c=g({})\ntool 1 of c=f\ntool 2 of c=g\ntool 3 of c=g\n", ""},
		{chatPath, messagesOf(user + `,{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},
			{"role":"function","name":"f","content":"1"}`), "user a\nassistant  000000001=f({})\ntool 1 of 000000001=f\n", ""},
		{chatPath, messagesOf(user + `,{"role":"assistant","tool_calls":[{"id":"c","type":"custom","custom":{"name":"f",
			"input":"x\ny"}}]}`), "user a\nassistant  c=f({\"input\":\"x\\ny\"})\n", ""},
		{messagesPath, messagesOf(user + `,{"role":"assistant","content":[{"type":"tool_use","name":"f","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","content":"1"}]}`),
			"user a\nassistant  000000001=f({})\ntool 1 of 000000001=f\n", ""},
		{chatPath, messagesOf(user + `,{"role":"assistant","content":"b","tool_calls":[{"id":"c"},7]}`),
			"user a\nassistant b\n",
			"messages[1].tool_calls[0]: a call without a name\nmessages[1].tool_calls[1]: a number"},
		{responsesPath, `{"input":["a",{"type":"function_call","call_id":"c","arguments":"{}"},
			{"type":"function_call_output","call_id":"gone","output":"r"}]}`, "user a\nuser " + orphan + "r\n",
			"input[1].arguments: a call without a name"},
	} {
		said, warnings := understood(t, c.path, c.body)
		if said != c.said || !covers(warnings, c.warning) {
			t.Errorf("%s\ngot  %q\nwant %q\nwarnings %q, want %q", c.body, said, c.said, warnings, c.warning)
		}
	}
}

// covers reports whether each expected line is the start of a warning and no other warning exists.
func covers(warnings, want string) bool {
	for line := range strings.SplitSeq(want, "\n") {
		if line != "" && !strings.HasPrefix("\n"+warnings, "\n"+line) && !strings.Contains(warnings, "\n"+line) {
			return false
		}
	}
	return (warnings == "") == (want == "")
}

// TestContentKept sends content of every type in the middle of a conversation and in a last message
// that also has text.
func TestContentKept(t *testing.T) {
	const image = `{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}`
	for _, c := range []struct{ content, said, warning string }{
		{`"t"`, "t", ""}, {`["t"]`, "t", ""}, {`{"type":"text","text":"t"}`, "t", ""}, {`[{"text":"t"}]`, "t", ""},
		{`[{"type":"text","text":"t"},{"type":"output_text","text":"u"}]`, "t\nu", ""}, {`""`, "", ""},
		{`null`, "", ": null was read as empty text"}, {`[]`, "", ": an empty list was read as empty text"},
		{`[` + image + `,{"type":"text","text":"t"}]`, "t", "[0]: an image was left out"},
		{`[` + image + `]`, "(an image was left out)", "[0]: an image was left out"},
		{`[` + image + `,{"type":"text","text":" "}]`, "(an image was left out)", "[0]: an image was left out"},
		{`[{"type":"file","file":{"file_id":"x"}}]`, "(a file was left out)", "[0]: a file was left out"},
		{`[{"type":"input_audio","input_audio":{}}]`, "(an audio part was left out)", "[0]: an audio part was left out"},
		{`[{"type":"hologram","depth":3}]`, `(a part of the unknown kind "hologram" was left out)`,
			`[0]: a part of the unknown kind "hologram" was left out`},
		{`[{"type":"markdown","text":"t"}]`, "t", `[0]: only the text of a part of the unknown kind "markdown" was used`},
		{`[{"type":"text"},{"type":"text","text":"t"}]`, "t", "[0]: a part without text was left out"},
		{`[{"type":"text","text":7},"t"]`, "t", "[0]: a part without text was left out"},
		{`[7,"t"]`, "t", "[0]: a number was left out"}, {`true`, "(a boolean was left out)", ": a boolean was left out"},
		{`[{"type":"document","source":{"type":"text","data":"d"}},"t"]`, "d\nt", ""},
		{`[{"type":"document","source":{"type":"content","content":[{"type":"text","text":"d"}]}}]`, "d", ""},
		{`[{"type":"document","source":{"type":"base64","data":"AA=="}},"t"]`, "t", "[0]: a document was left out"},
		{`[{"type":"search_result","source":"s","content":[{"type":"text","text":"d"}]}]`, "d", ""},
		{`[{"type":7,"text":"t"}]`, "t", ""},
	} {
		for path, shape := range map[string]string{
			chatPath:      `{"messages":[{"role":"user","content":%s},{"role":"user","content":"b"}]}`,
			messagesPath:  `{"messages":[{"role":"user","content":%s},{"role":"user","content":"b"}]}`,
			responsesPath: `{"input":[{"type":"message","role":"user","content":%s},{"role":"user","content":"b"}]}`,
		} {
			said, warnings := understood(t, path, fmt.Sprintf(shape, c.content))
			field, warning := "messages", c.warning
			if path == responsesPath {
				field = "input"
			}
			if warning != "" {
				warning = field + "[0].content" + warning
			}
			if said != "user "+c.said+"\nuser b\n" || !covers(warnings, warning) {
				t.Errorf("%s %s: said %q, want %q; warnings %q, want %q", path, c.content, said, c.said, warnings,
					warning)
			}
		}
	}
}

// TestUnusable checks that an unusable last user message is refused with its path unless a usable
// message follows.
func TestUnusable(t *testing.T) {
	const image = `{"role":"user","content":[{"type":"image","source":{}}]}`
	s := New(&fake{words: []string{"x"}}, Options{})
	for _, c := range []struct{ path, body, param string }{
		{chatPath, messagesOf(image), "messages[0].content[0].type"},
		{chatPath, messagesOf(`{"role":"user","content":"a"},{"role":"assistant","content":"b"},` + image),
			"messages[2].content[0].type"},
		{chatPath, messagesOf(image + `,{"role":"system","content":"s"}`), "messages[0].content[0].type"},
		{chatPath, messagesOf(image + `,{"role":"assistant","content":null}`), "messages[0].content[0].type"},
		{chatPath, messagesOf(image + `,{"role":"assistant","content":"b"}`), ""},
		{chatPath, messagesOf(image + `,{"role":"tool","tool_call_id":"gone","content":"r"}`), ""},
		{chatPath, messagesOf(`{"role":"user","content":"a"},{"role":"user","content":null}`), "messages[1].content"},
		{chatPath, messagesOf(`{"role":"user","content":"a"},{"role":"user","content":[]}`), "messages[1].content"},
		{chatPath, messagesOf(`{"role":"user","content":"a"},7`), "messages[1]"},
		{chatPath, messagesOf(`7,{"role":"user","content":"a"}`), ""},
		{responsesPath, `{"input":[` + image + `]}`, "input[0].content[0].type"},
		{responsesPath, `{"input":[` + image + `,{"type":"later"}]}`, "input[0].content[0].type"},
		{responsesPath, `{"input":[` + image + `,{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]}`, ""},
		{responsesPath, `{"input":[{"role":"user","content":"a"},[]]}`, "input[1]"},
	} {
		w := post(t, s, c.path, c.body)
		param, _ := at(parsed(t, w.Body.Bytes()), "error", "param").(string)
		if want := map[bool]int{true: 200, false: 400}[c.param == ""]; w.Code != want || param != c.param {
			t.Errorf("%s %s: %d %s", c.path, c.body, w.Code, w.Body)
		}
	}
	count := messagesPath + "/count_tokens"
	for _, path := range []string{messagesPath, count, "/api/chat", "/apply-template", "/tokenize"} {
		if w := post(t, s, path, messagesOf(image)); w.Code != 400 || !strings.Contains(w.Body.String(), "only text") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// TestHistoryBounds checks that bodies that would take disproportionate memory or time are refused,
// and that nested documents are ignored.
func TestHistoryBounds(t *testing.T) {
	s := New(&fake{words: []string{"x"}}, Options{})
	deep := strings.Repeat(`{"type":"document","source":{"type":"content","content":[`, 3000) +
		strings.Repeat(`]}}`, 3000)
	if w := post(t, s, messagesPath, messagesOf(`{"role":"user","content":["a",`+deep+`]}`)); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	parts := `{"role":"user","content":` + many(conversation.MaxParts+1, `"a"`) + `}`
	if w := post(t, s, chatPath, messagesOf(parts)); w.Code != 400 || !strings.Contains(w.Body.String(), "more than") {
		t.Errorf("%d %.200s", w.Code, w.Body)
	}
}
