package chat

import (
	"strings"

	"sandwich/runtime/api"
	"sandwich/runtime/jinja"
)

// Message is a message of a Version.
type Message struct {
	Role         string
	Reasoning    string
	Calls        []api.ToolCall
	CallID, Name jinja.Text

	parts  []part
	ours   bool // an explanation of tools
	result bool // a tool result as user text
}

// part is a piece of a message's text; origin 0 is text of ours.
type part struct {
	text   string
	origin jinja.Origin
}

// partsOf returns the parts that are not empty.
func partsOf(parts ...part) (out []part) {
	for _, p := range parts {
		if p.text != "" {
			out = append(out, p)
		}
	}
	return out
}

// Content returns the text of the message.
func (m *Message) Content() jinja.Text {
	switch len(m.parts) {
	case 0:
		return jinja.Text{}
	case 1:
		return jinja.Marked(m.parts[0].text, m.parts[0].origin)
	}
	var text strings.Builder
	var spans []jinja.Span
	for _, p := range m.parts {
		from := text.Len()
		text.WriteString(p.text)
		if p.origin != 0 {
			spans = append(spans, jinja.Span{From: from, To: text.Len(), Origin: p.origin})
		}
	}
	return jinja.Text{Plain: text.String(), Spans: spans}
}

// Size returns the bytes of the message's texts.
func (m *Message) Size() int {
	n := len(m.Role) + len(m.Reasoning)
	for _, p := range m.parts {
		n += len(p.text)
	}
	return n
}

// blank reports whether the text is white space.
func (m *Message) blank() bool {
	for _, p := range m.parts {
		if !blank(p.text) {
			return false
		}
	}
	return true
}

// joined returns m with the text and the calls of next after its own.
func (m Message) joined(next Message, between string) Message {
	if len(m.parts) == 0 || len(next.parts) == 0 {
		between = ""
	}
	all := partsOf(part{text: between})
	m.parts = append(append(append(make([]part, 0, len(m.parts)+len(next.parts)+1), m.parts...), all...), next.parts...)
	if m.Reasoning != "" && next.Reasoning != "" {
		m.Reasoning += "\n\n"
	}
	m.Reasoning += next.Reasoning
	m.Calls = next.Calls
	m.ours = m.ours && next.ours
	m.result = next.result
	return m
}
