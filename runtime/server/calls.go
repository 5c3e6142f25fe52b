package server

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sandwich/runtime/api"
	"sandwich/runtime/toolcall"
)

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
			calls = h.call(calls, len(h.messages), c.ID, c.Function.Name, c.Function.arguments(), at+".function.arguments")
		}
		return nil
	})
	return calls, e
}

// inputArguments returns the arguments of a tool that takes text and no JSON.
func inputArguments(input string) string {
	return string(append(appendString([]byte(`{"input":`), input), '}'))
}
