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

// history builds the messages of a request from a conversation, for every API. It keeps all usable
// parts and adds a warning, path first, for each part that it leaves out or replaces. Clients send
// the whole conversation with every request, so refusing one old element would end the session.
// Only a last user message without any usable part is refused.
type history struct {
	warn     *api.Warnings
	messages []api.Message
	refusal  *apiError // error of an unusable last user message; nil if usable messages follow
	calls    callIndex
	moved    map[int][]api.Message // results that do not directly follow their call's message, by its index
	late     int                   // number of moved results
	owner    int                   // index of the last message that is not a result
}

// end returns the messages, or the error with which the request is refused. field is the field that
// holds the messages.
func (h *history) end(field string) ([]api.Message, *apiError) {
	if h.refusal == nil && len(h.messages) == 0 {
		return nil, invalid(field, "is empty; send at least one message")
	}
	return h.ordered(), h.refusal
}

// ordered returns the messages with each result directly after the message with its call, where
// templates expect it.
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

// object decodes an element of the conversation. Fields of the wrong type stay empty, with a
// warning. It returns false and records the element as unusable if raw is not an object.
func (h *history) object(raw json.RawMessage, v any, at string) (ok bool) {
	if isNull(raw) || raw[0] != '{' {
		h.leave(at, whatOf(raw))
		h.refusal = invalid(at, "must be an object, not %s", whatOf(raw))
		return false
	}
	h.fields(raw, v, at)
	return true
}

// fields decodes an object. Fields of the wrong type are skipped with a warning.
func (h *history) fields(raw json.RawMessage, v any, at string) {
	var wrong *json.UnmarshalTypeError
	if errors.As(json.Unmarshal(raw, v), &wrong) {
		h.warn.Add("%s: must be %s, not %s; the field was ignored", join(at, fieldOf(v, wrong.Field)),
			wanted(wrong.Type), article(wrong.Value))
	}
}

// leave records an unusable part.
func (h *history) leave(at, what string) {
	h.warn.Add("%s: %s was left out; only text, tool calls and their results are used", at, what)
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
		h.warn.Add("%s: only the text of %s was used", g.at, g.what)
	}
}

// refuse records the error of an unusable user message; it applies if no usable message follows.
func (h *history) refuse(c *content) {
	g := c.lost[0]
	h.refusal = invalid(g.at+g.field, "%s; the last user message has no usable content", g.fault)
}

// role returns the template role for a role that a client sent. Unknown roles become user, the role
// with the fewest privileges.
func (h *history) role(role *string, at string) string {
	known, ok := roles[stringOf(role)]
	switch {
	case ok:
		return known
	case role == nil:
		h.warn.Add("%s.role: is missing; the message was read as a user message", at)
	default:
		h.warn.Add("%s.role: %q is unknown; the message was read as a user message", at, clip(*role))
	}
	return "user"
}

// turnRole is like role, for APIs in which tool results are not messages.
func (h *history) turnRole(role *string, at string) string {
	known := h.role(role, at)
	if known == "tool" {
		h.warn.Add("%s.role: %q is not a role of this API; the message was read as a user message", at, *role)
		known = "user"
	}
	return known
}

// say adds a system or user message.
func (h *history) say(role string, c *content) {
	h.report(c)
	switch {
	case c.usable():
		h.add(api.Message{Role: role, Content: c.text()})
	case role == "user": // stays so that roles still alternate
		h.add(api.Message{Role: role, Content: c.orPlaceholder()})
		h.refuse(c)
	}
}

// answer adds an assistant message, which may have calls and reasoning instead of text.
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

// result adds the result of a call. If the call is not in the conversation, the result becomes a
// user message that names the call, because templates show results only after calls.
func (h *history) result(id, name string, c *content, at string) {
	h.report(c)
	text := c.orPlaceholder()
	if call, known := h.calls.answered(id, name); known {
		m := api.Message{Role: "tool", CallID: call.id, Name: call.name, Content: text}
		if call.owner == h.owner {
			h.add(m)
			return
		}
		h.warn.Add("%s: the result does not follow its call and was moved there", at)
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
	h.warn.Add("%s: the conversation does not contain %s before this result, which was kept as user text", at, of)
	text = fmt.Sprintf("[result of %s, which is not in this conversation]\n%s", of, text)
	h.add(api.Message{Role: "user", Content: text})
}

// add appends a message. A message that is not the system's cancels the refusal of an earlier user
// message.
func (h *history) add(m api.Message) {
	if m.Role != "tool" {
		h.owner = len(h.messages)
	}
	if h.messages = append(h.messages, m); m.Role != "system" {
		h.refusal = nil
	}
}

// roles maps client roles to template roles. developer is the newer name of system, function the
// older name of tool.
var roles = map[string]string{
	"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool",
	"function": "tool",
}

// callIndex finds the calls that results belong to.
type callIndex struct {
	byID map[string]indexedCall // the latest call of each id
	open []indexedCall          // calls without a result, in order
	made int                    // number of generated ids
}

// indexedCall is a call of the conversation.
type indexedCall struct {
	id, name string
	owner    int  // index of the message with the call
	made     bool // the id was generated
}

// maxOpen bounds the calls without a result that are kept for matching.
const maxOpen = 1024

// add records a call and returns its id. Calls without an id get one of nine digits, as some
// templates require.
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

// answered returns the call that a result belongs to. It prefers the first open call with the id of
// the result, then any call with that id. If the client sent no id with the result or with the
// call, it is the first open call with the name of the result, or the first one if the result has
// no name.
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

// cutNote explains call arguments that are not a JSON object to the model.
const cutNote = "these arguments were cut off or are not valid; the call was not run as it stands here"

// call appends a call to calls. Arguments that are not a JSON object, for example because the
// answer reached its length limit, become an object that quotes them, because many templates parse
// arguments as JSON. A call without a name is left out. owner is the index of the message that will
// hold the calls.
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
		h.warn.Add("%s: the arguments of the call of %q are not a JSON object; the model sees them as text with a "+
			"note", at, clip(name))
		text := appendString([]byte(`{"cut_arguments":`), arguments)
		arguments = string(append(appendString(append(text, `,"note":`...), cutNote), '}'))
	}
	return append(calls, api.ToolCall{ID: h.calls.add(id, name, owner), Name: name, Arguments: arguments})
}

// callBody is a call in a message of /v1/chat/completions or /api/chat.
type callBody struct {
	ID       string        `json:"id"`
	Function *functionCall `json:"function"`
	Custom   *struct {
		Name  string `json:"name"`
		Input string `json:"input"`
	} `json:"custom"`
}

// functionCall is a called function. Arguments are an object, or a string that contains one.
type functionCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// arguments returns the arguments as text.
func (f *functionCall) arguments() string {
	if text, ok := stringIn(f.Arguments); ok {
		return text
	}
	return string(f.Arguments)
}

// callList reads the calls of a message. old is the call in the field function_call, which predates
// tools.
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

// inputArguments returns the JSON arguments of a tool whose input is plain text.
func inputArguments(input string) string {
	return string(append(appendString([]byte(`{"input":`), input), '}'))
}
