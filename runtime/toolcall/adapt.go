package toolcall

import (
	"encoding/json"
	"strings"

	"sandwich/runtime/api"
)

// Declaration is a tool as templates show it: JSON in the order in which OpenAI documents it.
func Declaration(t *api.Tool) string {
	var b strings.Builder
	b.WriteString(`{"type": "function", "function": {"name": ` + quote(t.Name))
	b.WriteString(`, "description": ` + quote(t.Description))
	parameters := t.Parameters
	if parameters == "" {
		parameters = `{"type": "object", "properties": {}}`
	}
	b.WriteString(`, "parameters": ` + parameters + "}}")
	return b.String()
}

// How models without a format of their own are told of tools.
const (
	toolsIntro = "You can call functions. Each line between <tools> and </tools> describes one of them as JSON.\n" +
		"<tools>\n"
	toolsOutro = "</tools>\nTo call functions, write for each call its name and its arguments like this:\n"
)

// Adapt writes into the text of messages what the template of the format cannot show: tools into
// the system text, calls of the history into the assistant's, and results into the user's.
func (f *Format) Adapt(msgs []api.Message, tools []api.Tool) []api.Message {
	var out []api.Message
	if !f.Native && len(tools) > 0 {
		out = append(out, api.Message{Role: "system", Content: f.explain(tools)})
	}
	for _, m := range msgs {
		last := len(out) - 1
		switch {
		case f.Native && f.Written:
		case len(m.Calls) > 0:
			m.Content = strings.TrimLeft(m.Content+"\n"+f.write(m.Calls), "\n")
			m.Calls = nil
		case m.Role == "tool" && !f.Native:
			text := "<tool_response>\n" + m.Content + "\n</tool_response>"
			if last >= 0 && out[last].Role == "user" && strings.HasPrefix(out[last].Content, "<tool_response>") {
				out[last].Content += "\n" + text
				continue
			}
			m = api.Message{Role: "user", Content: text}
		}
		if last == 0 && len(tools) > 0 && !f.Native && m.Role == "system" {
			out[0].Content = m.Content + "\n\n" + out[0].Content
			continue
		}
		out = append(out, m)
	}
	return out
}

// IntoUser moves the system text into the first message of the user, for templates that take none.
func IntoUser(msgs []api.Message) []api.Message {
	if len(msgs) < 2 || msgs[0].Role != "system" || msgs[1].Role != "user" {
		return msgs
	}
	out := append([]api.Message(nil), msgs[1:]...)
	out[0].Content = msgs[0].Content + "\n\n" + out[0].Content
	return out
}

func (f *Format) explain(tools []api.Tool) string {
	var b strings.Builder
	b.WriteString(toolsIntro)
	for i := range tools {
		b.WriteString(Declaration(&tools[i]) + "\n")
	}
	b.WriteString(toolsOutro + f.write([]api.ToolCall{{Name: "name", Arguments: `{"argument": "value"}`}}))
	return b.String()
}

// write spells calls as the format has them.
func (f *Format) write(calls []api.ToolCall) string {
	var b strings.Builder
	b.WriteString(f.open)
	for i, c := range calls {
		if i > 0 {
			b.WriteString(f.between)
		}
		b.WriteString(f.before + c.Name + f.middle)
		f.writeArguments(&b, c.Arguments)
		b.WriteString(f.after)
	}
	b.WriteString(f.close)
	return b.String()
}

func (f *Format) writeArguments(b *strings.Builder, arguments string) {
	if f.args == nil {
		b.WriteString(arguments)
		return
	}
	d := json.NewDecoder(strings.NewReader(arguments))
	if _, err := d.Token(); err != nil {
		return
	}
	for n := 0; d.More(); n++ {
		key, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			return
		}
		if n > 0 {
			b.WriteString(f.args.between)
		}
		b.WriteString(f.args.before + key.(string) + f.args.middle + f.argument(value) + f.args.after)
	}
}

func (f *Format) argument(value json.RawMessage) string {
	var text string
	switch {
	case f.args.python && string(value) == "true":
		return "True"
	case f.args.python && string(value) == "false":
		return "False"
	case json.Unmarshal(value, &text) != nil || string(value) == "null":
	case f.args.raw:
		return text
	case f.args.quote != "":
		return f.args.quote + text + f.args.quote
	}
	return string(value)
}
