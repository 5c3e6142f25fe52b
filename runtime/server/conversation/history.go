// Package conversation reads the messages of a request and repairs what can be repaired: unusable
// parts are left out with a warning, and results are moved to their calls.
package conversation

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sandwich/runtime/api"
	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/fields"
	"sandwich/runtime/server/jsontext"
	"sandwich/runtime/toolcall"
)

// History builds the messages of a request from a conversation, for every API. It keeps all usable
// parts and adds a warning, path first, for each part that it leaves out or replaces. Clients send
// the whole conversation with every request, so refusing one old element would end the session.
// Only a last user message without any usable part is refused.
type History struct {
	Warn     *api.Warnings // receives the warnings; may be nil
	messages []api.Message
	refusal  *apierr.Error // error of an unusable last user message; nil if usable messages follow
	calls    callIndex
	moved    map[int][]api.Message // results that do not directly follow their call's message, by its index
	late     int                   // number of moved results
	owner    int                   // index of the last message that is not a result
}

// Finish returns the messages, or the error with which the request is refused. field is the field
// that holds the messages.
func (h *History) Finish(field string) ([]api.Message, *apierr.Error) {
	if h.refusal == nil && len(h.messages) == 0 {
		return nil, apierr.Invalid(field, "is empty; send at least one message")
	}
	return h.ordered(), h.refusal
}

// Len returns the number of messages so far.
func (h *History) Len() int { return len(h.messages) + h.late }

// Unchanged reports whether no message, not even an unusable one, was added since length was n.
func (h *History) Unchanged(n int) bool { return h.refusal == nil && h.Len() == n }

// Empty reports whether no message was added.
func (h *History) Empty() bool { return h.Unchanged(0) }

// ordered returns the messages with each result directly after the message with its call, where
// templates expect it.
func (h *History) ordered() []api.Message {
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

// Decode decodes an element of the conversation. Fields of the wrong type stay empty, with a
// warning. It returns false and records the element as unusable if raw is not an object.
func (h *History) Decode(raw json.RawMessage, v any, at string) (ok bool) {
	if jsontext.IsNull(raw) || raw[0] != '{' {
		h.LeaveOut(at, describeValue(raw))
		h.refusal = apierr.Invalid(at, "must be an object, not %s", describeValue(raw))
		return false
	}
	h.DecodeFields(raw, v, at)
	return true
}

// DecodeFields decodes an object. Fields of the wrong type are skipped with a warning.
func (h *History) DecodeFields(raw json.RawMessage, v any, at string) {
	var wrong *json.UnmarshalTypeError
	if errors.As(json.Unmarshal(raw, v), &wrong) {
		h.Warn.Add("%s: must be %s, not %s; the field was ignored", fields.Join(at, fields.PathOf(v, wrong.Field)),
			fields.TypeName(wrong.Type), fields.ValueName(wrong.Value))
	}
}

// LeaveOut adds a warning about the unusable part at a path, described by what.
func (h *History) LeaveOut(at, what string) {
	h.Warn.Add("%s: %s was left out; only text, tool calls and their results are used", at, what)
}

// Report adds warnings about the parts of a content that were left out or replaced.
func (h *History) Report(c *Content) {
	for _, g := range c.lost {
		if g.empty() {
			h.Warn.Add("%s: %s was read as empty text", g.at, g.what)
		} else {
			h.LeaveOut(g.at, g.what)
		}
	}
	for _, g := range c.notes {
		h.Warn.Add("%s: only the text of %s was used", g.at, g.what)
	}
}

// refuse records the error of an unusable user message; it applies if no usable message follows.
func (h *History) refuse(c *Content) {
	g := c.lost[0]
	h.refusal = apierr.Invalid(g.at+g.field, "%s; the last user message has no usable content", g.fault)
}

// Role returns the template role for a role that a client sent. Unknown roles become user, the role
// with the fewest privileges.
func (h *History) Role(role *string, at string) string {
	known, ok := roles[fields.String(role)]
	switch {
	case ok:
		return known
	case role == nil:
		h.Warn.Add("%s.role: is missing; the message was read as a user message", at)
	default:
		h.Warn.Add("%s.role: %q is unknown; the message was read as a user message", at, jsontext.Clip(*role))
	}
	return "user"
}

// MessageRole is like Role, for APIs in which tool results are not messages.
func (h *History) MessageRole(role *string, at string) string {
	known := h.Role(role, at)
	if known == "tool" {
		h.Warn.Add("%s.role: %q is not a role of this API; the message was read as a user message", at, *role)
		known = "user"
	}
	return known
}

// AddTurn adds a system or user message.
func (h *History) AddTurn(role string, c *Content) {
	h.Report(c)
	switch {
	case c.Usable():
		h.add(api.Message{Role: role, Content: c.text(), Mark: c.mark()})
	case role == "user": // stays so that roles still alternate
		h.add(api.Message{Role: role, Content: c.orPlaceholder()})
		h.refuse(c)
	}
}

// AddAnswer adds an assistant message, which may have calls and reasoning instead of text.
func (h *History) AddAnswer(m api.Message, c *Content) {
	said := m.Calls != nil || m.Reasoning != ""
	if said {
		c.lost = slices.DeleteFunc(c.lost, func(g gap) bool { return g.empty() })
	}
	h.Report(c)
	m.Role, m.Mark = "assistant", c.mark()
	if c.Usable() { // the model would take a placeholder for its own words
		m.Content = c.text()
	}
	refusal := h.refusal
	if h.add(m); !said && !c.Usable() {
		h.refusal = refusal
	}
}

// AddResult adds the result of a call. If the call is not in the conversation, the result becomes a
// user message that names the call, because templates show results only after calls.
func (h *History) AddResult(id, name string, c *Content, at string) {
	h.Report(c)
	text := c.orPlaceholder()
	if call, known := h.calls.answered(id, name); known {
		m := api.Message{Role: "tool", CallID: call.id, Name: call.name, Content: text, Mark: c.mark()}
		if call.owner == h.owner {
			h.add(m)
			return
		}
		h.Warn.Add("%s: the result does not follow its call and was moved there", at)
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
		of = fmt.Sprintf("the call %q", jsontext.Clip(id))
	case name != "":
		of = fmt.Sprintf("a call of %q", jsontext.Clip(name))
	}
	h.Warn.Add("%s: the conversation does not contain %s before this result, which was kept as user text", at, of)
	text = fmt.Sprintf("[result of %s, which is not in this conversation]\n%s", of, text)
	h.add(api.Message{Role: "user", Content: text, Mark: c.mark()})
}

// add appends a message. A message that is not the system's cancels the refusal of an earlier user
// message.
func (h *History) add(m api.Message) {
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

// AddCall adds a call and the reasoning before it to the preceding assistant message, or to a new
// one. It returns false for a call without a name.
func (h *History) AddCall(id, name, arguments, reasoning, at string) bool {
	owner := len(h.messages)
	if owner > 0 && h.messages[owner-1].Role == "assistant" {
		owner--
	}
	calls := h.call(nil, owner, id, name, arguments, at)
	if calls == nil {
		return false
	}
	if owner == len(h.messages) {
		h.add(api.Message{Role: "assistant"})
	}
	m := &h.messages[owner]
	m.Reasoning += reasoning
	m.Calls = append(m.Calls, calls...)
	h.refusal = nil
	return true
}

// AppendCall appends a call of the next message to calls. Arguments that are not a JSON object are
// quoted in one; a call without a name is left out. Both add a warning with the path at.
func (h *History) AppendCall(calls []api.ToolCall, id, name, arguments, at string) []api.ToolCall {
	return h.call(calls, len(h.messages), id, name, arguments, at)
}

// call appends a call to calls. Arguments that are not a JSON object, for example because the
// answer reached its length limit, become an object that quotes them, because many templates parse
// arguments as JSON. A call without a name is left out. owner is the index of the message that will
// hold the calls.
func (h *History) call(calls []api.ToolCall, owner int, id, name, arguments, at string) []api.ToolCall {
	if name == "" {
		h.Warn.Add("%s: a call without a name was left out", at)
		return calls
	}
	var object map[string]json.RawMessage
	if arguments = strings.TrimSpace(arguments); arguments == "" || arguments == "null" {
		arguments = "{}"
	}
	if err := json.Unmarshal([]byte(arguments), &object); err != nil {
		h.Warn.Add("%s: the arguments of the call of %q are not a JSON object; the model sees them as text with a "+
			"note", at, jsontext.Clip(name))
		text := jsontext.AppendString([]byte(`{"cut_arguments":`), arguments)
		arguments = string(append(jsontext.AppendString(append(text, `,"note":`...), cutNote), '}'))
	}
	return append(calls, api.ToolCall{ID: h.calls.add(id, name, owner), Name: name, Arguments: arguments})
}

// callBody is a call in a message of /v1/chat/completions or /api/chat.
type callBody struct {
	ID       string        `json:"id"`
	Function *FunctionCall `json:"function"`
	Custom   *struct {
		Name  string `json:"name"`
		Input string `json:"input"`
	} `json:"custom"`
}

// FunctionCall is a called function. Arguments are an object, or a string that contains one.
type FunctionCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// ArgumentsText returns the arguments as text.
func (f *FunctionCall) ArgumentsText() string {
	if text, ok := jsontext.String(f.Arguments); ok {
		return text
	}
	return string(f.Arguments)
}

// ReadCalls reads the calls of a message. old is the call in the field function_call, which
// predates tools.
func (h *History) ReadCalls(raw json.RawMessage, old *FunctionCall, at string) (calls []api.ToolCall, e *apierr.Error) {
	if old != nil {
		calls = h.AppendCall(calls, "", old.Name, old.ArgumentsText(), fields.Join(at, "function_call"))
	}
	if at = fields.Join(at, "tool_calls"); jsontext.IsEmpty(raw) {
		return calls, nil
	}
	if raw[0] != '[' {
		h.LeaveOut(at, describeValue(raw))
		return calls, nil
	}
	e = fields.Each(raw, at, toolcall.MaxTools, func(i int, item json.RawMessage) *apierr.Error {
		at := fmt.Sprintf("%s[%d]", at, i)
		var c callBody
		if jsontext.IsNull(item) || item[0] != '{' {
			h.LeaveOut(at, describeValue(item))
			return nil
		}
		switch h.DecodeFields(item, &c, at); {
		case c.Function == nil && c.Custom != nil:
			calls = h.AppendCall(calls, c.ID, c.Custom.Name, InputArguments(c.Custom.Input), at+".custom")
		case c.Function == nil:
			h.Warn.Add("%s: a call without a name was left out", at)
		default:
			f := c.Function
			calls = h.AppendCall(calls, c.ID, f.Name, f.ArgumentsText(), at+".function.arguments")
		}
		return nil
	})
	return calls, e
}

// InputArguments returns the JSON arguments of a tool whose input is plain text.
func InputArguments(input string) string {
	return string(append(jsontext.AppendString([]byte(`{"input":`), input), '}'))
}
