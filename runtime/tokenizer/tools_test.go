package tokenizer

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandwich/runtime/api"
	"sandwich/runtime/jinja"
	"sandwich/runtime/refdata"
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
	id := callID(jinja.Text{Plain: "c"}).Plain
	for _, c := range []struct{ name, template, want string }{
		{"an object", strings.Replace(shown, "ARGS", "c.function.arguments | tojson", 1),
			tool + `[user:Hi][assistant:` +
				`<tool_call>pick{"z": "x", "a": 1}` + id + `][tool:3 pears` + id + `]`},
		{"a text", strings.Replace(shown, "ARGS", "c.function.arguments.strip()", 1), tool + `[user:Hi][assistant:` +
			`<tool_call>pick{"z":"x","a":1}` + id + `][tool:3 pears` + id + `]`},
		{"no tools", `{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}`, "]" + "[user:Hi][assistant:" +
			said + "][user:<tool_response>\n3 pears\n</tool_response>]"},
		{"no system", `{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no') }}{% endif %}` +
			`[{{ m.role }}:{{ m.content }}]{% endfor %}`, "\n\nHi][assistant:" + said},
	} {
		tok := chatty(t, c.template)
		got, err := text(t, tok, Conversation{Messages: msgs, Tools: []api.Tool{fruit}, Reply: true})
		if err != nil || !strings.Contains(got, c.want) || !strings.Contains(got, `"name": "pick", "description"`) {
			t.Errorf("%s: %v\n got %q\nwant %q", c.name, err, got, c.want)
		}
	}
	msgs[1].Calls[0].Arguments = "{"
	_, err := text(t, chatty(t, strings.Replace(shown, "ARGS", "1", 1)), Conversation{Messages: msgs,
		Tools: []api.Tool{fruit}, Reply: true})
	if err != nil {
		t.Errorf("a template that shows no arguments: %v", err) // as text they are shown
	}
}

// rendered are conversations as Jinja2 rendered them.
type rendered struct {
	Template string
	Cases    []renderedCase
}

// renderedCase is a conversation and the text that Jinja2 rendered.
type renderedCase struct {
	ID       string
	Messages []struct {
		Role, Content, Name string
		CallID              string `json:"tool_call_id"`
		Calls               []struct {
			ID       string
			Function struct {
				Name      string
				Arguments json.RawMessage
			}
		} `json:"tool_calls"`
	}
	Vars struct {
		Tools []struct {
			Function struct {
				Name, Description string
				Parameters        json.RawMessage
			}
		}
		Think    *bool `json:"enable_thinking"`
		Thinking *bool
	}
	Expected string
}

// messages returns the conversation as requests hold it.
func (c *renderedCase) messages() (msgs []api.Message) {
	for _, m := range c.Messages {
		msg := api.Message{Role: m.Role, Content: m.Content, Name: m.Name, CallID: m.CallID}
		for _, call := range m.Calls {
			msg.Calls = append(msg.Calls, api.ToolCall{ID: call.ID, Name: call.Function.Name,
				Arguments: string(call.Function.Arguments)})
		}
		msgs = append(msgs, msg)
	}
	return msgs
}

// Real templates write tools and calls as Jinja2 did from the same conversation.
func TestRealToolTemplates(t *testing.T) {
	checked, thought := 0, 0
	for _, file := range refdata.Glob(t, "parity2/templates/*.json") {
		var doc rendered
		raw, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(raw, &doc)
		}
		if err != nil {
			t.Fatal(err)
		}
		source, err := os.ReadFile(filepath.Join(filepath.Dir(file), doc.Template))
		if err != nil {
			t.Fatal(err)
		}
		tok := chatty(t, string(source))
		if f := tok.ToolFormat(); !f.Native || !f.Written {
			continue
		}
		for _, c := range doc.Cases {
			think := c.Vars.Think
			if think == nil {
				think = c.Vars.Thinking
			}
			if c.Expected == "" || think == nil && !strings.HasPrefix(c.ID, "tool") {
				continue
			}
			variables := ""
			if think != nil {
				variables = fmt.Sprintf(`{"enable_thinking":%v,"thinking":%v}`, *think, *think)
			}
			msgs := c.messages()
			var tools []api.Tool
			for _, x := range c.Vars.Tools {
				tools = append(tools, api.Tool{Name: x.Function.Name, Description: x.Function.Description,
					Parameters: string(x.Function.Parameters)})
			}
			got, err := text(t, tok, Conversation{Messages: msgs, Tools: tools, Variables: variables,
				Reply: true})
			from := strings.Index(c.Expected, "get_weather")
			if think != nil {
				from = max(0, len(c.Expected)-24) // where reasoning begins, or is over
				thought++
			}
			if m := c.Messages[0]; m.Role == "system" && !strings.Contains(c.Expected, m.Content) {
				// The template leaves it out where a tool's result comes last.
				got = strings.Replace(got, "<system>\n"+m.Content+"\n</system>\n\n", "", 1)
			}
			if err != nil || !strings.Contains(got, tail(c.Expected, from)) {
				t.Errorf("%s %s: %v\n got %q\nwant %q", doc.Template, c.ID, err, got, c.Expected)
			}
			checked++
		}
	}
	if checked < 10 || thought < 8 {
		t.Errorf("only %d conversations, %d that say whether to reason", checked, thought)
	}
}

// tail is a text from the tools on, without the tokens that the test's vocabulary lacks at its end.
func tail(text string, from int) string {
	return strings.TrimSuffix(text[max(from, 0):], "</s>")
}
