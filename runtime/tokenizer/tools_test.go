package tokenizer

import (
	"strings"
	"testing"

	"sandwich/runtime/api"
)

var fruit = api.Tool{Name: "pick", Description: "Picks fruit",
	Parameters: `{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer"}}}`}

// A template with tools gets them with their properties in order, calls with their arguments, and
// results by the id of their call; one without gets a system text, or a user's where it takes none.
func TestChatTools(t *testing.T) {
	msgs := said("user", "Hi", "assistant", "", "tool", "3 pears")
	msgs[1].Calls = []api.ToolCall{{ID: "c", Name: "pick", Arguments: `{"z":"x","a":1}`}}
	msgs[2].CallID = "c"
	const shown = `{% for t in tools %}{{ t | tojson }}{% endfor %}{% for m in messages %}[{{ m.role }}:{{ m.content }}` +
		`{% for c in m.tool_calls or [] %}<tool_call>{{ c.function.name }}{{ ARGS }}{{ c.id }}{% endfor %}` +
		`{{ m.tool_call_id }}]{% endfor %}`
	const tool = `{"type": "function", "function": {"name": "pick", "description": "Picks fruit", "parameters": ` +
		`{"type": "object", "properties": {"z": {"type": "string"}, "a": {"type": "integer"}}}}}`
	const said = `<tool_call>` + "\n" + `{"name": "pick", "arguments": {"z":"x","a":1}}` + "\n</tool_call>"
	id := callID("c")
	for _, c := range []struct{ name, template, want string }{
		{"an object", strings.Replace(shown, "ARGS", "c.function.arguments | tojson", 1), tool + `[user:Hi][assistant:` +
			`<tool_call>pick{"z": "x", "a": 1}` + id + `][tool:3 pears` + id + `]`},
		{"a text", strings.Replace(shown, "ARGS", "c.function.arguments.strip()", 1), tool + `[user:Hi][assistant:` +
			`<tool_call>pick{"z":"x","a":1}` + id + `][tool:3 pears` + id + `]`},
		{"no tools", `{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}`, "]" + "[user:Hi][assistant:" +
			said + "][user:<tool_response>\n3 pears\n</tool_response>]"},
		{"no system", `{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no') }}{% endif %}` +
			`[{{ m.role }}:{{ m.content }}]{% endfor %}`, "\n\nHi][assistant:" + said},
	} {
		tok := chatty(t, c.template)
		got, err := tok.Chat(t.Context(), msgs, true, fruit)
		if err != nil || !strings.Contains(got, c.want) || !strings.Contains(got, `"name": "pick", "description"`) {
			t.Errorf("%s: %v\n got %q\nwant %q", c.name, err, got, c.want)
		}
	}
	msgs[1].Calls[0].Arguments = "{"
	if _, err := chatty(t, strings.Replace(shown, "ARGS", "1", 1)).Chat(t.Context(), msgs, true, fruit); err != nil {
		t.Errorf("a template that shows no arguments: %v", err) // as text they are shown
	}
}
