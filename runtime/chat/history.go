package chat

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"sandwich/runtime/api"
	"sandwich/runtime/jinja"
	"sandwich/runtime/toolcall"
)

// Roles of messages.
const (
	system    = "system"
	developer = "developer"
	user      = "user"
	assistant = "assistant"
	tool      = "tool"
)

// History is a conversation whose texts have origins: message i has origin i+1, declarations of
// tools and other texts of the request have the two after those. It is for one goroutine.
type History struct {
	format      *toolcall.Format
	tools       []api.Tool
	explanation []part // of the tools; made when it is first needed
	given       []api.Message
	messages    []Message
}

// New returns the history of a conversation. The model writes calls in the given format.
func New(format *toolcall.Format, given []api.Message, tools []api.Tool) *History {
	h := &History{format: format, tools: tools, given: given, messages: make([]Message, len(given))}
	for i, m := range given {
		h.messages[i] = Message{Role: m.Role, Reasoning: m.Reasoning, Calls: m.Calls,
			CallID: jinja.Marked(m.CallID, h.OtherOrigin()), Name: jinja.Marked(m.Name, h.OtherOrigin()),
			parts: partsOf(part{m.Content, origin(i)})}
	}
	return h
}

// origin returns the origin of a message's text.
func origin(message int) jinja.Origin { return jinja.Origin(message + 1) }

// ToolsOrigin returns the origin of declarations of tools.
func (h *History) ToolsOrigin() jinja.Origin { return origin(len(h.given)) }

// OtherOrigin returns the origin of the request's other texts: call ids and names in messages, and
// template variables.
func (h *History) OtherOrigin() jinja.Origin { return origin(len(h.given) + 1) }

// Guarded reports whether text of an origin must not yield control tokens: that of users and tools,
// declarations of tools, identifiers and variables. System and assistant text may.
func (h *History) Guarded(o jinja.Origin) bool {
	if i := int(o) - 1; i < len(h.given) {
		switch h.given[i].Role {
		case system, developer, assistant:
			return false
		}
	}
	return true
}

// End returns the position at which the text of the last message ends in an output, without white
// space at its end, and false if the output does not contain it.
func (h *History) End(text jinja.Text) (int, bool) {
	last := origin(len(h.given) - 1)
	for i := len(text.Spans) - 1; i >= 0; i-- {
		if s := text.Spans[i]; s.Origin == last && !blank(text.Plain[s.From:s.To]) {
			return s.From + len(strings.TrimRightFunc(text.Plain[s.From:s.To], unicode.IsSpace)), true
		}
	}
	return 0, false
}

// Missing returns the origins of texts that must leave output and did not: those of system,
// developer, user and tool messages, and declarations of tools. White space is no output. A message
// that only has words which the template looked for, such as a switch, is not missing.
func (h *History) Missing(out jinja.Output) (missing []jinja.Origin) {
	shown := make([]bool, len(h.given)+3)
	for _, s := range out.Spans {
		if !shown[s.Origin] && !blank(out.Plain[s.From:s.To]) {
			shown[s.Origin] = true
		}
	}
	for i, m := range h.given {
		o := origin(i)
		if m.Role != assistant && !shown[o] && !blank(m.Content) && !consumed(m.Content, out.Matches[o]) {
			missing = append(missing, o)
		}
	}
	if len(h.tools) > 0 && !shown[h.ToolsOrigin()] {
		missing = append(missing, h.ToolsOrigin())
	}
	return missing
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// consumed reports whether a text is nothing but words that the template looked for.
func consumed(text string, matches []string) bool {
	for _, m := range matches {
		text = strings.ReplaceAll(text, m, "")
	}
	return len(matches) > 0 && blank(text)
}

// Report warns of texts that have another place than in the conversation, and of those that are
// missing.
func (h *History) Report(v *Version, missing []jinja.Origin, w *api.Warnings) {
	add := func(message int, what string) {
		if message < len(h.given) {
			w.Add("messages: %s %s", h.describe(message), what)
		}
	}
	for _, i := range v.hoisted {
		add(i, "was merged into the first system message; the chat template does not show it in its place")
	}
	for _, i := range v.asUser {
		add(i, "was written into a user message; the chat template shows no system text there")
	}
	for _, o := range missing {
		add(int(o)-1, "was left out; the chat template does not show it")
		if o == h.ToolsOrigin() {
			w.Add("tools: the chat template does not show them")
		}
	}
}

// quoted is the number of bytes of a text that a warning quotes.
const quoted = 40

// describe names a message in a warning.
func (h *History) describe(i int) string {
	text := strings.TrimSpace(h.given[i].Content)
	if len(text) > quoted {
		end := quoted
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end] + "..."
	}
	return fmt.Sprintf("%s message %d of %d (%q)", h.given[i].Role, i+1, len(h.given), text)
}
