package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"sandwich/runtime/api"
)

type messageBody struct {
	Role       *string         `json:"role"`
	Content    json.RawMessage `json:"content"`
	Name       *string         `json:"name"` // has to be a string; shown for tools alone
	ToolCalls  json.RawMessage `json:"tool_calls"`
	ToolCallID *string         `json:"tool_call_id"`
	Reasoning  *string         `json:"reasoning_content"`
}

// roles maps what a client may say to what templates know: developer is the
// newer name of system, function the older one of tool.
var roles = map[string]string{
	"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool",
	"function": "tool",
}

func parseMessages(raw json.RawMessage) ([]api.Message, *apiError) {
	if isNull(raw) {
		return nil, invalid("messages", "is missing; send a list of messages")
	}
	var out []api.Message
	e := each(raw, "messages", MaxMessages, func(i int, item json.RawMessage) *apiError {
		at := fmt.Sprintf("messages[%d]", i)
		var b messageBody
		if isNull(item) || item[0] != '{' {
			return invalid(at, "must be an object")
		}
		if e := decode(item, &b, at); e != nil {
			return e
		}
		if b.Role == nil {
			return invalid(at+".role", "is missing")
		}
		role, ok := roles[*b.Role]
		if !ok {
			return invalid(at+".role", "is %q and must be system, developer, user, assistant or tool", clip(*b.Role))
		}
		if !isEmpty(b.ToolCalls) && role != "assistant" {
			return invalid(at+".tool_calls", "belong to assistant messages, not to %s ones", role)
		}
		m := api.Message{Role: role, CallID: stringOf(b.ToolCallID), Reasoning: stringOf(b.Reasoning)}
		if role == "tool" {
			m.Name = stringOf(b.Name)
		}
		var e *apiError
		if m.Calls, e = parseCalls(b.ToolCalls, at+".tool_calls"); e != nil {
			return e
		}
		if m.Content, e = parseContent(b.Content, at+".content", role); e != nil {
			return e
		}
		out = append(out, m)
		return nil
	})
	if e == nil && len(out) == 0 {
		e = invalid("messages", "is empty; send at least one message")
	}
	if e == nil {
		e = checkResults(out, func(i int) string { return fmt.Sprintf("messages[%d].tool_call_id", i) })
	}
	return out, e
}

// parseContent takes a string or a list of text parts, which are joined by line
// breaks as other servers do. Only an assistant may have said nothing.
func parseContent(raw json.RawMessage, at, role string) (string, *apiError) {
	var text string
	switch {
	case isNull(raw) && role == "assistant":
		return "", nil
	case isNull(raw):
		return "", invalid(at, "is missing")
	case raw[0] == '"':
		return text, decode(raw, &text, at)
	case raw[0] != '[':
		return "", invalid(at, "must be a string or a list of text parts")
	}
	var parts []string
	e := each(raw, at, MaxParts, func(i int, item json.RawMessage) *apiError {
		part := fmt.Sprintf("%s[%d]", at, i)
		var p struct {
			Type *string `json:"type"`
			Text *string `json:"text"`
		}
		if item[0] != '{' {
			return invalid(part, "must be an object")
		}
		if e := decode(item, &p, part); e != nil {
			return e
		}
		switch {
		case p.Type == nil:
			return invalid(part+".type", "is missing")
		case *p.Type != "text" && *p.Type != "input_text" && *p.Type != "output_text":
			return invalid(part+".type", "is %q; only text is supported", clip(*p.Type))
		case p.Text == nil:
			return invalid(part+".text", "is missing")
		}
		parts = append(parts, *p.Text)
		return nil
	})
	return strings.Join(parts, "\n"), e
}

// parsePrompt takes a string, a list of token ids, or a list of these.
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

// onePrompt takes a string or a list of token ids.
func onePrompt(raw json.RawMessage) (p prompted, e *apiError) {
	const field, accepted = "prompt", "must be a string or a list of token ids, or a list of these"
	switch {
	case raw[0] == '"':
		e = decode(raw, &p.text, field)
		return p, e
	case raw[0] != '[':
		return p, invalid(field, accepted)
	}
	// encoding/json would read null as 0.
	if e := decode(raw, &p.ids, field); e != nil || bytes.IndexByte(raw, 'n') >= 0 {
		return p, invalid(field, accepted)
	}
	if len(p.ids) == 0 {
		return p, invalid(field, "is empty")
	}
	for _, t := range p.ids {
		if t < 0 {
			return p, invalid(field, "holds the token id %d; ids are not negative", t)
		}
	}
	return p, nil
}
