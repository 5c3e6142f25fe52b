package server

import (
	"bytes"
	"encoding/json"
	"fmt"

	"sandwich/runtime/api"
)

// messageBody is a message of /v1/chat/completions.
type messageBody struct {
	Role       *string         `json:"role"`
	Content    json.RawMessage `json:"content"`
	Name       *string         `json:"name"` // used for tool results only
	ToolCalls  json.RawMessage `json:"tool_calls"`
	OldCall    *functionCall   `json:"function_call"` // predates tool_calls
	ToolCallID *string         `json:"tool_call_id"`
	Reasoning  *string         `json:"reasoning_content"`
	Refusal    json.RawMessage `json:"refusal"`
	Thought    json.RawMessage `json:"reasoning"` // vLLM's and OpenRouter's name of reasoning_content
}

// reasoning returns the reasoning of an assistant message. Values other than text are ignored.
func (b *messageBody) reasoning() string {
	text := stringOf(b.Reasoning)
	if text == "" {
		_ = json.Unmarshal(b.Thought, &text)
	}
	return text
}

// parseMessages reads the messages of a chat. Unusable parts are left out with a warning.
func parseMessages(raw json.RawMessage, warn *api.Warnings) ([]api.Message, *apiError) {
	if isNull(raw) {
		return nil, invalid("messages", "is missing; send a list of messages")
	}
	h := history{warn: warn}
	e := each(raw, "messages", MaxMessages, func(i int, item json.RawMessage) *apiError {
		return h.chat(item, fmt.Sprintf("messages[%d]", i))
	})
	if e != nil {
		return nil, e
	}
	return h.end("messages")
}

// chat adds a message of /v1/chat/completions.
func (h *history) chat(raw json.RawMessage, at string) *apiError {
	var b messageBody
	if !h.object(raw, &b, at) {
		return nil
	}
	role, field := h.role(b.Role, at), at+".content"
	if role == "tool" {
		c, e := readResult(b.Content, field)
		h.result(stringOf(b.ToolCallID), stringOf(b.Name), &c, at+".tool_call_id")
		return e
	}
	if isNull(b.Content) && !isEmpty(b.Refusal) {
		b.Content, field = b.Refusal, at+".refusal"
	}
	c, e := readContent(b.Content, field)
	if e != nil {
		return e
	}
	if role != "assistant" {
		if !isEmpty(b.ToolCalls) {
			h.warn.Add("%s.tool_calls: only assistant messages may have calls; they were left out", at)
		}
		h.say(role, &c)
		return nil
	}
	m := api.Message{Reasoning: b.reasoning()}
	if m.Calls, e = h.callList(b.ToolCalls, b.OldCall, at); e == nil {
		h.answer(m, &c)
	}
	return e
}

// parsePrompt reads a string, a list of token ids, or a list of these.
func parsePrompt(raw json.RawMessage, c *call) *apiError {
	const field = "prompt"
	if isNull(raw) {
		return invalid(field, "is missing")
	}
	several := false
	if raw[0] == '[' {
		if first := skipSpace(raw, 1); raw[first] == '"' || raw[first] == '[' {
			several = true
		}
	}
	if !several {
		p, e := onePrompt(raw)
		c.Text, c.Prompt = p.text, p.ids
		return e
	}
	e := each(raw, field, maxChoices, func(_ int, item json.RawMessage) *apiError {
		p, e := onePrompt(item)
		c.prompts = append(c.prompts, p)
		return e
	})
	if len(c.prompts) == 1 {
		c.Text, c.Prompt, c.prompts = c.prompts[0].text, c.prompts[0].ids, nil
	}
	return e
}

// onePrompt reads a string or a list of token ids.
func onePrompt(raw json.RawMessage) (p prompted, e *apiError) {
	const field, accepted = "prompt", "must be a string or a list of token ids, or a list of these"
	switch {
	case raw[0] == '"':
		e = decode(raw, &p.text, field)
		return p, e
	case raw[0] != '[':
		return p, invalid(field, accepted)
	}
	var err error
	if p.ids, err = parseIDs(raw); err != nil || bytes.IndexByte(raw, 'n') >= 0 { // null would be read as 0
		return p, invalid(field, accepted)
	}
	if len(p.ids) == 0 {
		return p, invalid(field, "is empty")
	}
	for _, t := range p.ids {
		if t < 0 {
			return p, invalid(field, "contains the negative token id %d", t)
		}
	}
	return p, nil
}
