package server

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// mishap is an element that goes wrong in a session and then stays in its history.
type mishap struct {
	name     string
	elements string // of the history, from the mishap on
	unusable bool   // its last element is a user message without usable content
}

// sessions are the histories of three agents, one per API, with mishaps of that API.
var sessions = []struct {
	name, path, field string
	mishaps           []mishap
}{
	{"chat", chatPath, "messages", []mishap{
		{"cut call", `{"role":"assistant","content":null,"tool_calls":[{"id":"cut","type":"function","function":{"name":"f",
			"arguments":"{\"v\": \"ab"}}]},{"role":"tool","tool_call_id":"cut","content":"not run"}`, false},
		{"call cut before its first byte", `{"role":"assistant","content":"","tool_calls":[{"id":"cut","type":"function",
			"function":{"name":"f","arguments":""}}]},{"role":"tool","tool_call_id":"cut","content":"not run"}`, false},
		{"call cut in its name", `{"role":"assistant","content":null,"tool_calls":[{"id":"cut","function":{"name":""}}]},
			{"role":"tool","tool_call_id":"cut","content":"not run"}`, false},
		{"call with a list as arguments", `{"role":"assistant","tool_calls":[{"id":"cut","function":{"name":"f",
			"arguments":"[]"}}]},{"role":"tool","tool_call_id":"cut","content":null}`, false},
		{"compacted call", `{"role":"tool","tool_call_id":"gone","content":"late"}`, false},
		{"compacted call without an id", `{"role":"tool","content":"late"}`, false},
		{"compacted call of an old client", `{"role":"function","name":"g","content":"late"}`, false},
		{"picture", `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,"}}]}`, true},
		{"picture with text", `{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url",
			"image_url":{}}]}`, false},
		{"picture in a result", `{"role":"assistant","tool_calls":[{"id":"p","function":{"name":"f","arguments":"{}"}}]},
			{"role":"tool","tool_call_id":"p","content":[{"type":"image_url","image_url":{}}]}`, false},
		{"file", `{"role":"user","content":[{"type":"file","file":{"file_data":"AA=="}}]}`, true},
		{"unknown part", `{"role":"user","content":[{"type":"novel","value":[1]}]}`, true},
		{"unknown role", `{"role":"critic","content":"no"}`, false},
		{"unknown call", `{"role":"assistant","content":"b","tool_calls":[{"id":"u","type":"novel","novel":{}}]}`, false},
		{"null", `{"role":"assistant","content":null}`, false},
		{"null of the user", `{"role":"user","content":null}`, true},
		{"calls of the user", `{"role":"user","content":"b","tool_calls":[{"id":"u"}]}`, false},
		{"no object", `7`, true},
	}},
	{"messages", messagesPath, "messages", []mishap{
		{"cut call", `{"role":"assistant","content":[{"type":"tool_use","id":"cut","name":"f","input":"{\"v\": "}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"cut","content":"not run","is_error":true}]}`, false},
		{"call without input", `{"role":"assistant","content":[{"type":"tool_use","id":"cut","name":"f"}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"cut"}]}`, false},
		{"call cut in its name", `{"role":"assistant","content":[{"type":"tool_use","id":"cut"}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"cut","content":null}]}`, false},
		{"compacted call", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"gone","content":"late"}]}`, false},
		{"compacted call with text", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"gone",
			"content":[{"type":"text","text":"late"}]},{"type":"text","text":"b"}]}`, false},
		{"result without an id", `{"role":"user","content":[{"type":"tool_result","content":"late"}]}`, false},
		{"picture", `{"role":"user","content":[{"type":"image","source":{"type":"base64","data":"AA=="}}]}`, true},
		{"picture in a result", `{"role":"assistant","content":[{"type":"tool_use","id":"p","name":"f","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"p","content":[{"type":"image","source":{}}]}]}`,
			false},
		{"document", `{"role":"user","content":[{"type":"document","source":{"type":"url","url":"x"}}]}`, true},
		{"unknown block", `{"role":"user","content":[{"type":"tool_reference","tool_name":"y"}]}`, true},
		{"unknown block of the assistant", `{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"w",
			"input":{}},{"type":"web_search_tool_result","tool_use_id":"s","content":[]},{"type":"text","text":"b"}]}`, false},
		{"unknown blocks alone", `{"role":"assistant","content":[{"type":"novel"}]}`, false},
		{"null", `{"role":"assistant","content":null}`, false},
		{"no blocks", `{"role":"assistant","content":[]}`, false},
		{"no blocks of the user", `{"role":"user","content":[]}`, true},
		{"call of the user", `{"role":"user","content":[{"type":"tool_use","id":"u","name":"f","input":{}},"b"]}`, false},
	}},
	{"responses", responsesPath, "input", []mishap{
		{"cut call", `{"type":"function_call","call_id":"cut","name":"f","arguments":"{\"v\": "},
			{"type":"function_call_output","call_id":"cut","output":"not run"}`, false},
		{"incomplete call", `{"type":"function_call","status":"incomplete","call_id":"cut","name":"f","arguments":"{"},
			{"type":"function_call_output","call_id":"cut","output":"not run"}`, false},
		{"incomplete call without output", `{"type":"function_call","status":"incomplete","call_id":"cut","name":"f",
			"arguments":""}`, false},
		{"call with an object as arguments", `{"type":"function_call","call_id":"cut","name":"f","arguments":{"v":1}},
			{"type":"function_call_output","call_id":"cut","output":{"ok":true}}`, false},
		{"compacted call", `{"type":"function_call_output","call_id":"gone","output":"late"}`, false},
		{"compacted custom call", `{"type":"custom_tool_call_output","call_id":"gone","output":"late"}`, false},
		{"output without an id", `{"type":"function_call_output","output":null}`, false},
		{"picture", `{"role":"user","content":[{"type":"input_image","image_url":"data:,"}]}`, true},
		{"picture in an output", `{"type":"function_call","call_id":"p","name":"f","arguments":"{}"},
			{"type":"function_call_output","call_id":"p","output":[{"type":"input_image","image_url":"data:,"}]}`, false},
		{"file", `{"role":"user","content":[{"type":"input_file","file_id":"x"},{"type":"input_text","text":"b"}]}`, false},
		{"unknown item", `{"type":"novel","content":{"deep":[1]},"status":7,"arguments":{}}`, false},
		{"additional tools", `{"type":"additional_tools","role":"developer","tools":[{"type":"namespace"}]}`, false},
		{"hosted call", `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search"}}`, false},
		{"compaction", `{"type":"compaction","encrypted_content":"x"}`, false},
		{"item without a kind", `{"value":1}`, false},
		{"unknown reference", `{"type":"item_reference","id":"msg_gone"}`, false},
		{"unknown role", `{"type":"message","role":"critic","content":"no"}`, false},
		{"null", `{"type":"message","role":"assistant","content":null}`, false},
	}},
}

// TestSessionsGoOn inserts each mishap at each position of each session and sends the growing
// session from there on, whole and streamed. Every request is answered unless its last user message
// is unusable, and no other text of the session is lost.
func TestSessionsGoOn(t *testing.T) {
	for _, s := range sessions {
		text, err := os.ReadFile("testdata/sessions/" + s.name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var session []json.RawMessage
		if err := json.Unmarshal(text, &session); err != nil {
			t.Fatal(err)
		}
		for _, m := range s.mishaps {
			var elements []json.RawMessage
			if err := json.Unmarshal([]byte("["+m.elements+"]"), &elements); err != nil {
				t.Fatal(m.name, err)
			}
			for at := range len(session) + 1 {
				grown := slices.Insert(slices.Clone(session), at, elements...)
				for end := at + len(elements); end <= len(grown); end++ {
					// Until the next element that the model sees, the mishap is the last message.
					last := m.unusable && !slices.ContainsFunc(grown[at+len(elements):end], seen)
					want := map[bool]int{true: 400, false: 200}[last]
					if at+len(elements) == end && at == 0 && !m.unusable && !seen(grown[end-1]) {
						continue // only parts that are left out
					}
					name := fmt.Sprintf("%s, %s at %d of %d", s.name, m.name, at, end)
					sendSession(t, s.path, s.field, name, grown[:end], want)
				}
			}
		}
	}
}

// seen reports whether an element of a session is more than a system message or reasoning.
func seen(element json.RawMessage) bool {
	var e struct{ Type, Role string }
	_ = json.Unmarshal(element, &e)
	switch e.Type {
	case "", "message":
		return e.Role != "system" && e.Role != "developer" && e.Role != ""
	case "function_call", "custom_tool_call", "function_call_output", "custom_tool_call_output":
		return true
	}
	return false
}

func sendSession(t *testing.T, path, field, name string, elements []json.RawMessage, want int) {
	t.Helper()
	list, err := json.Marshal(elements)
	if err != nil {
		t.Fatal(err)
	}
	for _, stream := range []string{"false", "true"} {
		f := &fake{words: []string{"ok"}}
		w := post(t, New(f, Options{}), path, `{"`+field+`":`+string(list)+`,"stream":`+stream+`}`)
		if w.Code != want {
			t.Errorf("%s, stream %s: status %d, want %d: %.300s", name, stream, w.Code, want, w.Body)
			continue
		}
		if want != 200 {
			continue
		}
		said := ""
		for _, m := range f.request().Messages {
			said += m.Content + "\n"
			for _, c := range m.Calls {
				said += c.Arguments + "\n"
			}
		}
		for _, text := range []string{"Count the files.", "b.go", "package a", "package b", "patched", "two files",
			"read only", "c.go", "late", "not run"} {
			if strings.Contains(string(list), text) && !strings.Contains(said, text) {
				t.Errorf("%s: %q is lost in %q", name, text, said)
			}
		}
	}
}
