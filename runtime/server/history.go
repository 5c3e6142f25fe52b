package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sandwich/runtime/api"
	"sandwich/runtime/toolcall"
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

// callIndex finds the calls that results belong to.
type callIndex struct {
	byID map[string]indexedCall // the latest call of each id
	open []indexedCall          // without a result yet, in their order
	made int                    // ids made for calls without one
}

type indexedCall struct {
	id, name string
	owner    int  // index of the message that has the call
	made     bool // the client sent no id
}

// maxOpen bounds the calls without a result that results without an id are matched with.
const maxOpen = 1024

// add records a call and returns its id, which is made up where it has none: nine digits, as some
// templates demand.
func (x *callIndex) add(id, name string, owner int) string {
	made := id == ""
	for _, taken := x.byID[id]; id == "" || made && taken; _, taken = x.byID[id] {
		x.made++
		id = fmt.Sprintf("%09d", x.made)
	}
	if x.byID == nil {
		x.byID = map[string]indexedCall{}
	}
	c := indexedCall{id, name, owner, made}
	x.byID[id] = c
	if len(x.open) == maxOpen {
		x.open = slices.Delete(x.open, 0, 1)
	}
	x.open = append(x.open, c)
	return id
}

// answered returns the call that a result belongs to: the first one without a result that has its
// id, else one that had a result already. Where the client sent no id with the result or with the
// call, it is the first one without a result that has its name, or any.
func (x *callIndex) answered(id, name string) (c indexedCall, known bool) {
	called, sent := x.byID[id]
	i := slices.IndexFunc(x.open, func(c indexedCall) bool {
		if sent {
			return c.id == id
		}
		return (id == "" || c.made) && (name == "" || name == c.name)
	})
	if i < 0 {
		return called, sent
	}
	c = x.open[i]
	x.open = slices.Delete(x.open, i, i+1)
	return c, true
}

// cutNote stands next to the arguments of a call that are not a JSON object.
const cutNote = "these arguments were cut off or are not valid; the call was not run as it stands here"

// call adds a call of the conversation to calls. Arguments that are not a JSON object, as a limit
// on the length of an answer leaves them, become an object that shows their text: many templates
// read arguments as JSON. A call without a name is left out. owner is the index of the message that
// will have the calls.
func (h *history) call(calls []api.ToolCall, owner int, id, name, arguments, at string) []api.ToolCall {
	if name == "" {
		h.warn.Add("%s: a call without a name was left out", at)
		return calls
	}
	var object map[string]json.RawMessage
	if arguments = strings.TrimSpace(arguments); arguments == "" || arguments == "null" {
		arguments = "{}"
	}
	if err := json.Unmarshal([]byte(arguments), &object); err != nil {
		h.warn.Add("%s: the arguments of the call of %q are not a JSON object; the model sees their text and that "+
			"the call was cut", at, clip(name))
		text := appendString([]byte(`{"cut_arguments":`), arguments)
		arguments = string(append(appendString(append(text, `,"note":`...), cutNote), '}'))
	}
	return append(calls, api.ToolCall{ID: h.calls.add(id, name, owner), Name: name, Arguments: arguments})
}

// callBody is a call in a message of /v1/chat/completions and of ollama.
type callBody struct {
	ID       string        `json:"id"`
	Function *functionCall `json:"function"`
	Custom   *struct {
		Name  string `json:"name"`
		Input string `json:"input"`
	} `json:"custom"`
}

// functionCall is the function that a call names. Arguments are an object, or a string that holds
// one.
type functionCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

func (f *functionCall) arguments() string {
	if text, ok := stringIn(f.Arguments); ok {
		return text
	}
	return string(f.Arguments)
}

// callList reads the calls of a message. old is the one call of the API before tools.
func (h *history) callList(raw json.RawMessage, old *functionCall, at string) (calls []api.ToolCall, e *apiError) {
	if old != nil {
		calls = h.call(calls, len(h.messages), "", old.Name, old.arguments(), join(at, "function_call"))
	}
	if at = join(at, "tool_calls"); isEmpty(raw) {
		return calls, nil
	}
	if raw[0] != '[' {
		h.leave(at, whatOf(raw))
		return calls, nil
	}
	e = each(raw, at, toolcall.MaxTools, func(i int, item json.RawMessage) *apiError {
		at := fmt.Sprintf("%s[%d]", at, i)
		var c callBody
		if isNull(item) || item[0] != '{' {
			h.leave(at, whatOf(item))
			return nil
		}
		switch h.fields(item, &c, at); {
		case c.Function == nil && c.Custom != nil:
			calls = h.call(calls, len(h.messages), c.ID, c.Custom.Name, inputArguments(c.Custom.Input), at+".custom")
		case c.Function == nil:
			h.warn.Add("%s: a call without a name was left out", at)
		default:
			f := c.Function
			calls = h.call(calls, len(h.messages), c.ID, f.Name, f.arguments(), at+".function.arguments")
		}
		return nil
	})
	return calls, e
}

// inputArguments returns the arguments of a tool that takes text and no JSON.
func inputArguments(input string) string {
	return string(append(appendString([]byte(`{"input":`), input), '}'))
}
