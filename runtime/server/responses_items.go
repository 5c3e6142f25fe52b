package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"sandwich/runtime/api"
)

// messages reads instructions, the turns that the request continues, and input. Instructions apply
// to this request alone.
func (a *asking) messages() *apiError {
	b, h := &a.body, &a.history
	h.warn = a.Warnings
	if b.Instructions != nil && *b.Instructions != "" {
		h.say("system", &content{texts: []string{*b.Instructions}})
	}
	before := len(h.messages)
	read := func(item json.RawMessage, at string) *apiError {
		e := a.item(item, at)
		if len(h.messages)+h.late > MaxMessages {
			return invalid(at, "makes more than the %d messages accepted; begin anew, with what matters of them "+
				"as input", MaxMessages)
		}
		return e
	}
	if e := a.earlier(read); e != nil {
		return e
	}
	switch {
	case isEmpty(b.Input) && a.before == nil:
		return invalid("input", "is missing or empty; send text or a list of items")
	case isEmpty(b.Input):
	case b.Input[0] == '"':
		if e := read(b.Input, "input"); e != nil {
			return e
		}
	default:
		if e := each(b.Input, "input", MaxMessages, func(i int, item json.RawMessage) *apiError {
			return read(item, fmt.Sprintf("input[%d]", i))
		}); e != nil {
			return e
		}
	}
	if h.refusal == nil && len(h.messages) == before {
		return invalid("input", "holds nothing that the model sees; send text or at least one message")
	}
	var e *apiError
	a.Messages, e = h.end("input")
	return e
}

// earlier reads the turns that the request goes on from.
func (a *asking) earlier(read func(item json.RawMessage, at string) *apiError) *apiError {
	const field = "previous_response_id"
	id := stringOf(a.body.PreviousResponseID)
	if id == "" {
		return nil
	}
	if a.before = a.answers.hold(a.salt, id); a.before == nil {
		e := noResponse(http.StatusBadRequest, id)
		e.Param, e.Code = new(string), new(string)
		*e.Param, *e.Code = field, "previous_response_not_found"
		return e
	}
	bytes := int64(0)
	for t := a.before; t != nil && bytes <= a.most; t = t.before {
		bytes += t.bytes
	}
	if bytes > a.most {
		return invalid(field, "goes on from more than the %d bytes accepted; begin anew, with what matters of them as "+
			"input", a.most)
	}
	for _, t := range a.before.chain() {
		for _, item := range slices.Concat(t.input, t.output) {
			if e := read(item, field); e != nil {
				return e
			}
		}
	}
	a.kept = nil // they are in their own turns
	return nil
}

// item adds an item of the input to the history. Its kind is known before the rest of it is decoded.
func (a *asking) item(raw json.RawMessage, at string) *apiError {
	h := &a.history
	if _, text := stringIn(raw); text {
		raw = append(append([]byte(`{"role":"user","content":`), raw...), '}')
	}
	var head struct {
		Type string  `json:"type"`
		ID   string  `json:"id"`
		Role *string `json:"role"`
	}
	if !h.object(raw, &head, at) {
		return nil
	}
	if head.Type == "item_reference" || head.Type == "" && head.Role == nil && head.ID != "" {
		stored := a.answers.item(a.salt, head.ID)
		if stored == nil {
			h.warn.Add("%s.id: no stored answer has the item %q, which was left out", at, clip(head.ID))
			return nil
		}
		raw, head.Type, head.Role = stored, "", nil
		h.fields(raw, &head, at)
	}
	a.kept = append(a.kept, raw)
	switch head.Type {
	case "", "message":
		if head.Type == "" && head.Role == nil {
			h.leave(at, "an item without a kind and a role")
			return nil
		}
		return a.messageItem(raw, h.turnRole(head.Role, at), at)
	case "function_call", "custom_tool_call":
		a.callItem(raw, at)
	case "function_call_output", "custom_tool_call_output":
		return a.outputItem(raw, at)
	case "reasoning":
		return a.reasoningItem(raw, at)
	default:
		h.leave(at, fmt.Sprintf("an item of the kind %q", clip(head.Type)))
	}
	return nil
}

// messageItem adds a message.
func (a *asking) messageItem(raw json.RawMessage, role, at string) *apiError {
	var item struct {
		Content json.RawMessage `json:"content"`
	}
	a.history.fields(raw, &item, at)
	c, e := readContent(item.Content, at+".content")
	if role != "assistant" {
		a.history.say(role, &c)
		return e
	}
	a.history.answer(api.Message{Reasoning: a.reasoning}, &c)
	a.reasoning = ""
	return e
}

// callItem adds a call to the message of the assistant before it, or to a new one.
func (a *asking) callItem(raw json.RawMessage, at string) {
	var item struct {
		Type      string          `json:"type"`
		CallID    string          `json:"call_id"`
		Name      string          `json:"name"`
		Namespace string          `json:"namespace"`
		Arguments json.RawMessage `json:"arguments"`
		Input     string          `json:"input"`
	}
	h := &a.history
	h.fields(raw, &item, at)
	arguments := (&functionCall{Arguments: item.Arguments}).arguments()
	if item.Type == "custom_tool_call" {
		arguments = inputArguments(item.Input)
	}
	owner := len(h.messages)
	if owner > 0 && h.messages[owner-1].Role == "assistant" {
		owner--
	}
	calls := h.call(nil, owner, item.CallID, within(item.Namespace, item.Name), arguments, at+".arguments")
	if calls == nil {
		return
	}
	if owner == len(h.messages) {
		h.add(api.Message{Role: "assistant"})
	}
	m := &h.messages[owner]
	m.Reasoning += a.reasoning
	m.Calls = append(m.Calls, calls...)
	a.reasoning, h.refusal = "", nil
}

// outputItem adds the result of a call.
func (a *asking) outputItem(raw json.RawMessage, at string) *apiError {
	var item struct {
		CallID string          `json:"call_id"`
		Output json.RawMessage `json:"output"`
	}
	a.history.fields(raw, &item, at)
	var c content
	var e *apiError
	if !isNull(item.Output) { // a tool may have nothing to say
		c, e = readResult(item.Output, at+".output")
	}
	a.history.result(item.CallID, "", &c, at+".call_id")
	return e
}

// reasoningItem keeps the reasoning of the answer that follows it; templates decide whether a model
// sees it again.
func (a *asking) reasoningItem(raw json.RawMessage, at string) *apiError {
	var item struct {
		Content json.RawMessage `json:"content"`
		Summary json.RawMessage `json:"summary"`
	}
	a.history.fields(raw, &item, at)
	list, field := item.Content, at+".content"
	if isEmpty(list) {
		list, field = item.Summary, at+".summary"
	}
	if isEmpty(list) {
		return nil // encrypted, or without text
	}
	c, e := readContent(list, field)
	a.history.report(&c)
	a.reasoning += strings.Join(c.texts, "")
	return e
}
