// Package anthropic serves Anthropic's messages API.
package anthropic

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"sandwich/runtime/api"
	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/conversation"
	"sandwich/runtime/server/exchange"
	"sandwich/runtime/server/fields"
	"sandwich/runtime/server/generation"
	"sandwich/runtime/server/jsontext"
	"sandwich/runtime/server/request"
	"sandwich/runtime/toolcall"
)

// API serves /v1/messages and /v1/messages/count_tokens.
type API struct{ *generation.Runner }

// messagesBody is the body of /v1/messages in Anthropic's format. Other fields are accepted and
// ignored. Prompts are always cached in memory; cache_control says what is stored on disk.
type messagesBody struct {
	Model         *string           `json:"model"`
	Stream        *bool             `json:"stream"`
	System        json.RawMessage   `json:"system"`
	Messages      json.RawMessage   `json:"messages"`
	MaxTokens     *jsontext.Integer `json:"max_tokens"`
	StopSequences json.RawMessage   `json:"stop_sequences"`
	Temperature   *float64          `json:"temperature"`
	TopP          *float64          `json:"top_p"`
	TopK          *jsontext.Integer `json:"top_k"`
	Tools         json.RawMessage   `json:"tools"`
	ToolChoice    json.RawMessage   `json:"tool_choice"`
	OutputFormat  json.RawMessage   `json:"output_format"`
	OutputConfig  *struct {
		Format json.RawMessage `json:"format"`
	} `json:"output_config"`
	MCPServers        json.RawMessage `json:"mcp_servers"`
	Thinking          json.RawMessage `json:"thinking"`
	ServiceTier       json.RawMessage `json:"service_tier"`
	CacheControl      json.RawMessage `json:"cache_control"`
	Container         json.RawMessage `json:"container"`
	ContextManagement json.RawMessage `json:"context_management"`
}

var messagesFields = fields.Names[messagesBody]()

// parseMessagesCall checks the body of /v1/messages and /v1/messages/count_tokens.
func parseMessagesCall(data []byte) (*request.Call, *apierr.Error) {
	var b messagesBody
	if e := fields.Decode(data, &b, ""); e != nil {
		return nil, e
	}
	unknown, e := fields.Check(data, messagesFields())
	if e != nil {
		return nil, e
	}
	if !jsontext.IsEmpty(b.MCPServers) {
		return nil, apierr.Invalid("mcp_servers", "are not supported; send their tools as tools")
	}
	shared := request.Common{Stream: b.Stream, MaxTokens: b.MaxTokens, Temperature: b.Temperature, TopP: b.TopP,
		TopK:           b.TopK,
		ResponseFormat: b.OutputFormat}
	if b.OutputConfig != nil && !jsontext.IsNull(b.OutputConfig.Format) {
		shared.ResponseFormat = b.OutputConfig.Format
	}
	c, e := shared.Check()
	if e != nil {
		return nil, e
	}
	c.Unknown, c.Keep = unknown, !jsontext.IsNull(b.CacheControl)
	how, e := request.ParseThinking(b.Thinking, "thinking")
	if e == nil {
		e = how.Apply(&c.Request, "thinking")
	}
	if e != nil {
		return nil, e
	}
	if c.Stop, e = request.ParseStop(b.StopSequences, "stop_sequences"); e != nil {
		return nil, e
	}
	if e = b.choice(&c.Request); e != nil {
		return nil, e
	}
	if e = b.tools(c); e != nil {
		return nil, e
	}
	return c, b.messages(&c.Request)
}

// choice reads the tool choice: auto, any, none, or tool with a name.
func (b *messagesBody) choice(r *api.Request) *apierr.Error {
	if jsontext.IsNull(b.ToolChoice) {
		return nil
	}
	var choice struct {
		Type    string `json:"type"`
		Name    string `json:"name"`
		OneCall bool   `json:"disable_parallel_tool_use"`
	}
	if e := fields.Decode(b.ToolChoice, &choice, "tool_choice"); e != nil {
		return e
	}
	r.OneCall = choice.OneCall
	switch choice.Type {
	case "auto":
	case "none":
		r.ToolChoice.Mode = api.ToolsNone
	case "any":
		r.ToolChoice.Mode = api.ToolsRequired
	case "tool":
		if choice.Name == "" {
			return apierr.Invalid("tool_choice.name", "is missing; send the name of a tool")
		}
		r.ToolChoice = api.ToolChoice{Mode: api.ToolsRequired, Names: []string{choice.Name}}
	default:
		return apierr.Invalid("tool_choice.type", "is %q and must be auto, any, tool or none",
			jsontext.Clip(choice.Type))
	}
	return nil
}

// tools reads tools with a schema. Tools that Anthropic defines are left out with a warning.
func (b *messagesBody) tools(c *request.Call) *apierr.Error {
	if jsontext.IsEmpty(b.Tools) {
		return request.CheckTools(&c.Request)
	}
	e := fields.Each(b.Tools, "tools", toolcall.MaxTools, func(i int, item json.RawMessage) *apierr.Error {
		var t struct {
			Type        *string         `json:"type"`
			Name        *string         `json:"name"`
			Description *string         `json:"description"`
			InputSchema json.RawMessage `json:"input_schema"`
			Strict      *bool           `json:"strict"`
			Cache       json.RawMessage `json:"cache_control"`
		}
		if e := fields.Decode(item, &t, fmt.Sprintf("tools[%d]", i)); e != nil {
			return e
		}
		c.ToolsMarked = c.ToolsMarked || !jsontext.IsNull(t.Cache)
		if kind := fields.String(t.Type); kind != "" && kind != "custom" {
			c.Warnings.Add("tools[%d]: the type %q is not supported; the tool was left out", i, jsontext.Clip(kind))
			return nil
		}
		f := request.Function{Name: t.Name, Description: t.Description, Parameters: t.InputSchema, Strict: t.Strict}
		c.Tools = append(c.Tools, f.Tool())
		return nil
	})
	if e == nil {
		e = request.CheckTools(&c.Request)
	}
	return e
}

// Messages handles /v1/messages.
func (s *API) Messages(w http.ResponseWriter, r *http.Request) {
	s.Handle(w, r, parseMessagesCall, func(x *exchange.Exchange, r *http.Request, c *request.Call,
		g generation.Generator) {
		out := exchange.NewStream(exchange.NewAnswer(g.Model().ID, true), x, s.Limits.Heartbeat)
		out.ErrorPrefix = "event: error\ndata: "
		defer out.Close()
		if c.Stream { // the first event states the length of the prompt
			c.Loading = out.Loading
			var err error
			if c.Prompt, err = g.Prompt(r.Context(), &c.Request); err != nil {
				if x.Status = apierr.StatusClientGone; !apierr.ClientGone(r.Context()) {
					x.Status = out.Fail(apierr.From(generation.Cause(r.Context(), err), true))
				}
				return
			}
		}
		m := &blocks{Stream: out, call: c}
		out.KeepAlive = m.ping
		s.Respond(x, r, c, g, out, m)
	})
}

// CountTokens handles /v1/messages/count_tokens.
func (s *API) CountTokens(w http.ResponseWriter, r *http.Request) {
	s.Handle(w, r, parseMessagesCall, func(x *exchange.Exchange, r *http.Request, c *request.Call,
		g generation.Generator) {
		ids, err := g.Prompt(r.Context(), &c.Request)
		if err != nil {
			s.Refuse(x, r, err)
			return
		}
		out := exchange.AppendWarnings(jsontext.AppendInt([]byte(`{"input_tokens":`), len(ids)), c.Warnings.List())
		jsontext.Write(x, http.StatusOK, append(out, '}'))
	})
}

// billingPrefix starts a block of the system prompt that a client uses for accounting. The block
// changes with every request and would defeat the prefix cache.
const billingPrefix = "x-anthropic-billing-header:"

// messages reads system and messages. If the last message is the assistant's and has text, the
// answer continues it.
func (b *messagesBody) messages(r *api.Request) *apierr.Error {
	h := conversation.History{Warn: r.Warnings}
	if e := addSystem(&h, b.System); e != nil {
		return e
	}
	if jsontext.IsNull(b.Messages) {
		return apierr.Invalid("messages", "is missing; send a list of messages")
	}
	e := fields.Each(b.Messages, "messages", request.MaxMessages, func(i int, item json.RawMessage) *apierr.Error {
		return addMessage(&h, item, fmt.Sprintf("messages[%d]", i))
	})
	if e != nil {
		return e
	}
	if r.Messages, e = h.Finish("messages"); e != nil {
		return e
	}
	last := &r.Messages[len(r.Messages)-1]
	switch {
	case last.Role == "system":
		return apierr.Invalid("messages", "is empty; send at least one message")
	case last.Role != "assistant":
	case strings.TrimSpace(last.Content) != "" && last.Calls == nil:
		r.Continue = true
	case last.Calls == nil && last.Reasoning == "" && len(r.Messages) > 1:
		r.Messages = r.Messages[:len(r.Messages)-1] // an empty message would be answered by itself
	default:
		h.Warn.Add("messages: the last message is the assistant's and has no text to continue; " +
			"a new answer was started")
	}
	return nil
}

// addSystem adds the system prompt: a string or a list of blocks.
func addSystem(h *conversation.History, raw json.RawMessage) *apierr.Error {
	switch {
	case jsontext.IsEmpty(raw):
		return nil
	case raw[0] != '[':
		var text string
		if e := fields.Decode(raw, &text, "system"); e != nil {
			return e
		}
		h.AddTurn("system", &conversation.Content{Texts: []string{text}})
		return nil
	}
	c, e := conversation.ReadContent(raw, "system")
	if e != nil {
		return e
	}
	c.DeleteTexts(func(text string) bool {
		text = strings.TrimSpace(text)
		if billing := strings.HasPrefix(text, billingPrefix); !billing || !strings.Contains(text, "\n") {
			return billing
		}
		h.Warn.Add("system: a block of several lines that starts with %s was left out", billingPrefix)
		return true
	})
	h.AddTurn("system", &c)
	return nil
}

// addMessage adds a message of /v1/messages: one message, and one for each tool result, in order.
func addMessage(h *conversation.History, raw json.RawMessage, at string) *apierr.Error {
	var b struct {
		Role    *string         `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if !h.Decode(raw, &b, at) {
		return nil
	}
	t := blockTurn{History: h, role: h.MessageRole(b.Role, at)}
	at += ".content"
	if jsontext.IsNull(b.Content) || b.Content[0] != '[' {
		var e *apierr.Error
		t.content, e = conversation.ReadContent(b.Content, at)
		t.flush(true)
		return e
	}
	n := 0
	e := fields.Each(b.Content, at, conversation.MaxParts, func(i int, item json.RawMessage) *apierr.Error {
		n++
		return t.block(item, fmt.Sprintf("%s[%d]", at, i))
	})
	if n == 0 {
		t.content.AddEmpty(at)
	}
	t.flush(true)
	return e
}

// blockTurn is a message of /v1/messages whose blocks are being read.
type blockTurn struct {
	*conversation.History
	role    string
	message api.Message // calls and reasoning of an assistant message
	content conversation.Content
	added   bool // a part of the message is in the history
}

// flush adds the blocks read since the last flush to the history.
func (t *blockTurn) flush(last bool) {
	switch c := &t.content; {
	case t.role == "assistant":
		if t.message.Calls != nil || t.message.Reasoning != "" || !c.Blank() {
			t.AddAnswer(t.message, c)
		}
	case c.Usable() || last && !t.added:
		t.AddTurn(t.role, c)
	default:
		t.Report(c)
		return
	}
	t.message, t.content, t.added = api.Message{}, conversation.Content{}, true
}

// block adds a block of a message.
func (t *blockTurn) block(raw json.RawMessage, at string) *apierr.Error {
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
		Cache     json.RawMessage `json:"cache_control"`
	}
	ours := t.role == "assistant"
	switch {
	case kind.Type == "tool_result":
		t.DecodeFields(raw, &b, at)
		t.flush(false)
		t.added = true
		var c conversation.Content
		var e *apierr.Error
		if !jsontext.IsNull(b.Content) { // a tool may return nothing
			c, e = conversation.ReadResult(b.Content, at+".content")
		}
		if !jsontext.IsNull(b.Cache) {
			c.Mark()
		}
		t.AddResult(b.ToolUseID, "", &c, at+".tool_use_id")
		return e
	case ours && kind.Type == "thinking":
		t.DecodeFields(raw, &b, at)
		t.message.Reasoning += b.Thinking
	case ours && kind.Type == "redacted_thinking": // encrypted
	case ours && kind.Type == "tool_use":
		t.DecodeFields(raw, &b, at)
		input := conversation.FunctionCall{Arguments: b.Input}
		t.message.Calls = t.AppendCall(t.message.Calls, b.ID, b.Name, input.ArgumentsText(), at+".input")
		if !jsontext.IsNull(b.Cache) {
			t.content.Mark()
		}
	default:
		return t.content.AddPart(raw, at)
	}
	return nil
}
