package toolcall

import (
	"encoding/json"
	"strings"

	"sandwich/runtime/api"
)

// Declaration returns a tool as chat templates show it: one line of JSON with the fields in
// OpenAI's documented order and characters instead of \u escapes.
func Declaration(t *api.Tool) string {
	var b strings.Builder
	b.WriteString(`{"type": "function", "function": {"name": ` + plainQuote(t.Name))
	b.WriteString(`, "description": ` + plainQuote(t.Description))
	parameters := t.Parameters
	if parameters == "" {
		parameters = `{"type": "object", "properties": {}}`
	}
	b.WriteString(`, "parameters": ` + plainJSON(parameters) + "}}")
	return b.String()
}

// plainQuote returns text as a JSON string on one line, with as few escapes as possible.
func plainQuote(text string) string { return plainJSON(quote(text)) }

// Text that explains tools to models without a tool-call format of their own.
const (
	toolsIntro = "You can call functions. Each line between <tools> and </tools> describes one of them as JSON.\n" +
		"<tools>\n"
	toolsOutro = "</tools>\nTo call functions, write for each call its name and its arguments like this:\n"
)

// Explanation returns a system text that describes tools to a model whose template cannot show
// them, in three parts: an introduction, the declarations, and how to write calls.
func (f *Format) Explanation(tools []api.Tool) (intro, declarations, outro string) {
	var b strings.Builder
	for i := range tools {
		b.WriteString(Declaration(&tools[i]) + "\n")
	}
	example := []api.ToolCall{{Name: "name", Arguments: `{"argument": "value"}`}}
	return toolsIntro, b.String(), toolsOutro + f.Write(example)
}

// Write returns calls in the model's own syntax, for the history of a chat.
func (f *Format) Write(calls []api.ToolCall) string {
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

// writeArguments writes a JSON object of arguments. Formats with named arguments get them one by
// one; invalid JSON is cut off at the error.
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

// argument returns one value in the syntax of named arguments.
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
