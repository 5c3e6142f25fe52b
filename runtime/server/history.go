package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"sandwich/runtime/api"
)

// history builds the messages of a request from the elements of a conversation, for every API. It
// keeps what can be used of each element and adds a warning, path first, for each part that it
// leaves out or replaces: a client sends its whole conversation with every request, so one element
// that is refused would end the session. Only a last message of the user of which nothing can be
// used is refused.
type history struct {
	warn     *api.Warnings
	messages []api.Message
	refusal  *apiError // of the last message of the user; nil where something usable follows it
	calls    callIndex
	moved    map[int][]api.Message // results that come later than their call's message, by its index
	late     int                   // how many these are
	owner    int                   // index of the last message that is not a result
}

// end returns the messages, or why the request is refused. field is the field that holds them.
func (h *history) end(field string) ([]api.Message, *apiError) {
	if h.refusal == nil && len(h.messages) == 0 {
		return nil, invalid(field, "is empty; send at least one message")
	}
	return h.ordered(), h.refusal
}

// ordered returns the messages with each result next to the message that has its call: templates
// find it nowhere else.
func (h *history) ordered() []api.Message {
	if h.moved == nil {
		return h.messages
	}
	var out []api.Message
	for i := 0; i < len(h.messages); {
		owner := i
		out = append(out, h.messages[i])
		for i++; i < len(h.messages) && h.messages[i].Role == "tool"; i++ {
			out = append(out, h.messages[i])
		}
		out = append(out, h.moved[owner]...)
	}
	return out
}

// object decodes an element of the conversation, which must be an object. Fields of a wrong type
// stay empty, with a warning. ok is false, and the element is lost, where it is not an object.
func (h *history) object(raw json.RawMessage, v any, at string) (ok bool) {
	if isNull(raw) || raw[0] != '{' {
		h.leave(at, whatOf(raw))
		h.refusal = invalid(at, "must be an object, not %s", whatOf(raw))
		return false
	}
	h.fields(raw, v, at)
	return true
}

// fields decodes an object. Of a field of a wrong type, the rest of the object is still decoded.
func (h *history) fields(raw json.RawMessage, v any, at string) {
	var wrong *json.UnmarshalTypeError
	if errors.As(json.Unmarshal(raw, v), &wrong) {
		h.warn.Add("%s: must be %s, not %s; the field was ignored", join(at, fieldOf(v, wrong.Field)),
			wanted(wrong.Type), article(wrong.Value))
	}
}

// leave records a part that cannot be used.
func (h *history) leave(at, what string) {
	h.warn.Add("%s: %s was left out; only text, calls of tools and their results are used", at, what)
}

// report records the parts of a content that were left out or replaced.
func (h *history) report(c *content) {
	for _, g := range c.lost {
		if g.empty() {
			h.warn.Add("%s: %s was read as empty text", g.at, g.what)
		} else {
			h.leave(g.at, g.what)
		}
	}
	for _, g := range c.notes {
		h.warn.Add("%s: of %s only the text was used", g.at, g.what)
	}
}

// refuse keeps why a message of the user cannot be used, in case nothing usable follows it.
func (h *history) refuse(c *content) {
	g := c.lost[0]
	h.refusal = invalid(g.at+g.field, "%s; the last message of the user holds nothing that can be used", g.fault)
}

// role returns the role that templates know for one that a client sent. A role that is not known
// counts as the user's, who may do least.
func (h *history) role(role *string, at string) string {
	known, ok := roles[stringOf(role)]
	switch {
	case ok:
		return known
	case role == nil:
		h.warn.Add("%s.role: is missing; the message was read as one of the user", at)
	default:
		h.warn.Add("%s.role: %q is not known; the message was read as one of the user", at, clip(*role))
	}
	return "user"
}

// turnRole is role for an API in which results are no messages.
func (h *history) turnRole(role *string, at string) string {
	known := h.role(role, at)
	if known == "tool" {
		h.warn.Add("%s.role: %q is not a role of this API; the message was read as one of the user", at, *role)
		known = "user"
	}
	return known
}

// say adds a message of the system or of the user.
func (h *history) say(role string, c *content) {
	h.report(c)
	switch {
	case c.usable():
		h.add(api.Message{Role: role, Content: c.text()})
	case role == "user": // stays, so that roles alternate as before
		h.add(api.Message{Role: role, Content: c.orPlaceholder()})
		h.refuse(c)
	}
}

// answer adds a message of the assistant, which may have calls and reasoning instead of text.
func (h *history) answer(m api.Message, c *content) {
	said := m.Calls != nil || m.Reasoning != ""
	if said {
		c.lost = slices.DeleteFunc(c.lost, func(g gap) bool { return g.empty() })
	}
	h.report(c)
	m.Role = "assistant"
	if c.usable() { // the model would take a placeholder for its own words
		m.Content = c.text()
	}
	refusal := h.refusal
	if h.add(m); !said && !c.usable() {
		h.refusal = refusal
	}
}

// result adds the result of a call. One whose call is not in the conversation before it becomes a
// message of the user that says which call it answers: templates show results only after calls.
func (h *history) result(id, name string, c *content, at string) {
	h.report(c)
	text := c.orPlaceholder()
	if call, known := h.calls.answered(id, name); known {
		m := api.Message{Role: "tool", CallID: call.id, Name: call.name, Content: text}
		if call.owner == h.owner {
			h.add(m)
			return
		}
		h.warn.Add("%s: other messages are between this result and its call, to which it was moved", at)
		if h.moved == nil {
			h.moved = map[int][]api.Message{}
		}
		h.moved[call.owner], h.refusal = append(h.moved[call.owner], m), nil
		h.late++
		return
	}
	of := "a call of a tool"
	switch {
	case id != "":
		of = fmt.Sprintf("the call %q", clip(id))
	case name != "":
		of = fmt.Sprintf("a call of %q", clip(name))
	}
	h.warn.Add("%s: %s is not in the conversation before this result, which was kept as text of the user", at, of)
	text = fmt.Sprintf("[result of %s, which is not in this conversation]\n%s", of, text)
	h.add(api.Message{Role: "user", Content: text})
}

// add appends a message. What follows a message of the user that cannot be used makes the request
// usable, unless it is the system's.
func (h *history) add(m api.Message) {
	if m.Role != "tool" {
		h.owner = len(h.messages)
	}
	if h.messages = append(h.messages, m); m.Role != "system" {
		h.refusal = nil
	}
}

// roles maps the roles that clients send to those that templates know: developer is the newer name
// of system, function the older one of tool.
var roles = map[string]string{
	"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool",
	"function": "tool",
}
