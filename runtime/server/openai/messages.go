package openai

import (
	"bytes"
	"encoding/json"
	"fmt"

	"sandwich/runtime/api"
	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/conversation"
	"sandwich/runtime/server/fields"
	"sandwich/runtime/server/jsontext"
	"sandwich/runtime/server/request"
)

// messageBody is a message of /v1/chat/completions.
type messageBody struct {
	Role       *string                    `json:"role"`
	Content    json.RawMessage            `json:"content"`
	Name       *string                    `json:"name"` // used for tool results only
	ToolCalls  json.RawMessage            `json:"tool_calls"`
	OldCall    *conversation.FunctionCall `json:"function_call"` // predates tool_calls
	ToolCallID *string                    `json:"tool_call_id"`
	Reasoning  *string                    `json:"reasoning_content"`
	Refusal    json.RawMessage            `json:"refusal"`
	Thought    json.RawMessage            `json:"reasoning"` // vLLM's and OpenRouter's name of reasoning_content
	Cache      json.RawMessage            `json:"cache_control"`
}

// reasoning returns the reasoning of an assistant message. Values other than text are ignored.
func (b *messageBody) reasoning() string {
	text := fields.String(b.Reasoning)
	if text == "" {
		_ = json.Unmarshal(b.Thought, &text)
	}
	return text
}

// parseMessages reads the messages of a chat. Unusable parts are left out with a warning.
func parseMessages(raw json.RawMessage, warn *api.Warnings) ([]api.Message, *apierr.Error) {
	if jsontext.IsNull(raw) {
		return nil, apierr.Invalid("messages", "is missing; send a list of messages")
	}
	h := conversation.History{Warn: warn}
	e := fields.Each(raw, "messages", request.MaxMessages, func(i int, item json.RawMessage) *apierr.Error {
		return addChatMessage(&h, item, fmt.Sprintf("messages[%d]", i))
	})
	if e != nil {
		return nil, e
	}
	return h.Finish("messages")
}

// addChatMessage adds a message of /v1/chat/completions.
func addChatMessage(h *conversation.History, raw json.RawMessage, at string) *apierr.Error {
	var b messageBody
	if !h.Decode(raw, &b, at) {
		return nil
	}
	role, field := h.Role(b.Role, at), at+".content"
	mark := func(c *conversation.Content) {
		if !jsontext.IsNull(b.Cache) {
			c.Mark()
		}
	}
	if role == "tool" {
		c, e := conversation.ReadResult(b.Content, field)
		mark(&c)
		h.AddResult(fields.String(b.ToolCallID), fields.String(b.Name), &c, at+".tool_call_id")
		return e
	}
	if jsontext.IsNull(b.Content) && !jsontext.IsEmpty(b.Refusal) {
		b.Content, field = b.Refusal, at+".refusal"
	}
	c, e := conversation.ReadContent(b.Content, field)
	if e != nil {
		return e
	}
	mark(&c)
	if role != "assistant" {
		if !jsontext.IsEmpty(b.ToolCalls) {
			h.Warn.Add("%s.tool_calls: only assistant messages may have calls; they were left out", at)
		}
		h.AddTurn(role, &c)
		return nil
	}
	m := api.Message{Reasoning: b.reasoning()}
	if m.Calls, e = h.ReadCalls(b.ToolCalls, b.OldCall, at); e == nil {
		h.AddAnswer(m, &c)
	}
	return e
}

// parsePrompt reads a string, a list of token ids, or a list of these.
func parsePrompt(raw json.RawMessage, c *request.Call) *apierr.Error {
	const field = "prompt"
	if jsontext.IsNull(raw) {
		return apierr.Invalid(field, "is missing; send a text or a list of token ids")
	}
	several := false
	if raw[0] == '[' {
		if first := jsontext.SkipSpace(raw, 1); raw[first] == '"' || raw[first] == '[' {
			several = true
		}
	}
	if !several {
		p, e := onePrompt(raw)
		c.Text, c.Prompt = p.Text, p.IDs
		return e
	}
	e := fields.Each(raw, field, request.MaxChoices, func(_ int, item json.RawMessage) *apierr.Error {
		p, e := onePrompt(item)
		c.Prompts = append(c.Prompts, p)
		return e
	})
	if len(c.Prompts) == 1 {
		c.Text, c.Prompt, c.Prompts = c.Prompts[0].Text, c.Prompts[0].IDs, nil
	}
	return e
}

// onePrompt reads a string or a list of token ids.
func onePrompt(raw json.RawMessage) (p request.Prompt, e *apierr.Error) {
	const field, accepted = "prompt", "must be a string or a list of token ids, or a list of these"
	switch {
	case raw[0] == '"':
		e = fields.Decode(raw, &p.Text, field)
		return p, e
	case raw[0] != '[':
		return p, apierr.Invalid(field, accepted)
	}
	var err error
	if p.IDs, err = jsontext.ParseTokenIDs(raw); err != nil || bytes.IndexByte(raw,
		'n') >= 0 { // null would be read as 0
		return p, apierr.Invalid(field, accepted)
	}
	if len(p.IDs) == 0 {
		return p, apierr.Invalid(field, "is empty; send at least one token id")
	}
	for _, t := range p.IDs {
		if t < 0 {
			return p, apierr.Invalid(field, "contains the negative token id %d; ids start at 0", t)
		}
	}
	return p, nil
}
