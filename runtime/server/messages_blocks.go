package server

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sandwich/runtime/api"
)

// billingPrefix begins a block of the system prompt by which a client of Anthropic's API accounts.
// It changes with every request, so it would keep the prompt from being found in the cache.
const billingPrefix = "x-anthropic-billing-header:"

// messages reads system and messages. If the last message is the assistant's and has text, the
// answer continues it.
func (b *messagesBody) messages(r *api.Request) *apiError {
	h := history{warn: r.Warnings}
	if e := h.anthropicSystem(b.System); e != nil {
		return e
	}
	if isNull(b.Messages) {
		return invalid("messages", "is missing; send a list of messages")
	}
	e := each(b.Messages, "messages", MaxMessages, func(i int, item json.RawMessage) *apiError {
		return h.anthropic(item, fmt.Sprintf("messages[%d]", i))
	})
	if e != nil {
		return e
	}
	if r.Messages, e = h.end("messages"); e != nil {
		return e
	}
	last := &r.Messages[len(r.Messages)-1]
	switch {
	case last.Role == "system":
		return invalid("messages", "is empty; send at least one message")
	case last.Role != "assistant":
	case strings.TrimSpace(last.Content) != "" && last.Calls == nil:
		r.Continue = true
	case last.Calls == nil && last.Reasoning == "" && len(r.Messages) > 1:
		r.Messages = r.Messages[:len(r.Messages)-1] // which is empty, and would be answered by itself
	default:
		h.warn.Add("messages: the last one is the assistant's and has no text to continue; a new answer was begun")
	}
	return nil
}

// anthropicSystem adds the system prompt: a string, or a list of blocks.
func (h *history) anthropicSystem(raw json.RawMessage) *apiError {
	switch {
	case isEmpty(raw):
		return nil
	case raw[0] != '[':
		var text string
		if e := decode(raw, &text, "system"); e != nil {
			return e
		}
		h.say("system", &content{texts: []string{text}})
		return nil
	}
	c, e := readContent(raw, "system")
	if e != nil {
		return e
	}
	c.texts = slices.DeleteFunc(c.texts, func(text string) bool {
		text = strings.TrimSpace(text)
		if billing := strings.HasPrefix(text, billingPrefix); !billing || !strings.Contains(text, "\n") {
			return billing
		}
		h.warn.Add("system: a block that begins with %s was left out, and it has more lines than that", billingPrefix)
		return true
	})
	h.say("system", &c)
	return nil
}

// anthropic adds a message of /v1/messages: one of ours, and one for each result of a tool, in
// their order.
func (h *history) anthropic(raw json.RawMessage, at string) *apiError {
	var b struct {
		Role    *string         `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if !h.object(raw, &b, at) {
		return nil
	}
	t := blockTurn{history: h, role: h.turnRole(b.Role, at)}
	at += ".content"
	if isNull(b.Content) || b.Content[0] != '[' {
		var e *apiError
		t.content, e = readContent(b.Content, at)
		t.flush(true)
		return e
	}
	n := 0
	e := each(b.Content, at, MaxParts, func(i int, item json.RawMessage) *apiError {
		n++
		return t.block(item, fmt.Sprintf("%s[%d]", at, i))
	})
	if n == 0 {
		t.content.lose(gap{at: at, what: whatEmpty, fault: "is empty"})
	}
	t.flush(true)
	return e
}

// blockTurn is a message of /v1/messages while its blocks are read.
type blockTurn struct {
	*history
	role    string
	message api.Message // of the assistant
	content content
	added   bool // a part of it is in the history
}

// flush adds what was read since the last flush to the history.
func (t *blockTurn) flush(last bool) {
	switch c := &t.content; {
	case t.role == "assistant":
		if t.message.Calls != nil || t.message.Reasoning != "" || c.texts != nil || c.lost != nil {
			t.answer(t.message, c)
		}
	case c.usable() || last && !t.added:
		t.say(t.role, c)
	default:
		t.report(c)
		return
	}
	t.message, t.content, t.added = api.Message{}, content{}, true
}

// block adds a block of a message.
func (t *blockTurn) block(raw json.RawMessage, at string) *apiError {
	var kind struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(raw, &kind)
	var b struct {
		Thinking  string          `json:"thinking"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
		ToolUseID string          `json:"tool_use_id"`
		Content   json.RawMessage `json:"content"`
	}
	ours := t.role == "assistant"
	switch {
	case kind.Type == "tool_result":
		t.fields(raw, &b, at)
		t.flush(false)
		t.added = true
		var c content
		var e *apiError
		if !isNull(b.Content) { // a tool may have nothing to say
			c, e = readResult(b.Content, at+".content")
		}
		t.result(b.ToolUseID, "", &c, at+".tool_use_id")
		return e
	case ours && kind.Type == "thinking":
		t.fields(raw, &b, at)
		t.message.Reasoning += b.Thinking
	case ours && kind.Type == "redacted_thinking": // encrypted
	case ours && kind.Type == "tool_use":
		t.fields(raw, &b, at)
		input := functionCall{Arguments: b.Input}
		t.message.Calls = t.call(t.message.Calls, len(t.messages), b.ID, b.Name, input.arguments(), at+".input")
	default:
		return t.content.part(raw, at)
	}
	return nil
}
