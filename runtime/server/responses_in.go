package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"

	"sandwich/runtime/api"
	"sandwich/runtime/toolcall"
)

// responsesBody is the body of /v1/responses. What else its clients send is taken and changes
// nothing: nothing is stored, and reasoning is as the model's template has it.
type responsesBody struct {
	Model              *string         `json:"model"`
	Stream             *bool           `json:"stream"`
	Input              json.RawMessage `json:"input"`
	Instructions       *string         `json:"instructions"`
	Tools              json.RawMessage `json:"tools"`
	ToolChoice         json.RawMessage `json:"tool_choice"`
	ParallelToolCalls  *bool           `json:"parallel_tool_calls"`
	MaxOutputTokens    *int64          `json:"max_output_tokens"`
	Temperature        *float64        `json:"temperature"`
	TopP               *float64        `json:"top_p"`
	Seed               *int64          `json:"seed"`
	ServiceTier        *string         `json:"service_tier"`
	PreviousResponseID *string         `json:"previous_response_id"`
	Background         *bool           `json:"background"`
	Text               *struct {
		Format json.RawMessage `json:"format"`
	} `json:"text"`
	Include          json.RawMessage `json:"include"`
	Truncation       json.RawMessage `json:"truncation"`
	ClientMetadata   json.RawMessage `json:"client_metadata"`
	StreamOptions    json.RawMessage `json:"stream_options"`
	SafetyIdentifier json.RawMessage `json:"safety_identifier"`
}

var responsesFields = jsonNames(reflect.TypeFor[responsesBody]())

// parseResponses checks the body of /v1/responses.
func parseResponses(data []byte) (*call, *apiError) {
	var b responsesBody
	if e := decode(data, &b, ""); e != nil {
		return nil, e
	}
	unknown, e := checkFields(data, responsesFields)
	if e != nil {
		return nil, e
	}
	switch {
	case stringOf(b.PreviousResponseID) != "":
		return nil, invalid("previous_response_id", "is not supported, for nothing is stored; send the whole input")
	case b.Background != nil && *b.Background:
		return nil, invalid("background", "is not supported; leave it out")
	}
	shared := common{Stream: b.Stream, MaxTokens: b.MaxOutputTokens, Temperature: b.Temperature, TopP: b.TopP,
		Seed: b.Seed, ServiceTier: b.ServiceTier}
	if b.Text != nil {
		shared.ResponseFormat = b.Text.Format
	}
	c, e := shared.check()
	if e != nil {
		return nil, e
	}
	c.unknown = unknown
	c.OneCall = b.ParallelToolCalls != nil && !*b.ParallelToolCalls
	if c.ToolChoice, e = parseToolChoice(b.ToolChoice); e != nil {
		return nil, e
	}
	if e := b.tools(c); e != nil {
		return nil, e
	}
	return c, b.messages(&c.Request)
}

// customTool is the schema of a tool that takes text and no JSON.
const customTool = `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],` +
	`"additionalProperties":false}`

// tools reads functions and custom tools. Those that OpenAI runs itself are left out with a
// warning.
func (b *responsesBody) tools(c *call) *apiError {
	if isEmpty(b.Tools) {
		return checkTools(&c.Request)
	}
	c.custom = map[string]bool{}
	e := each(b.Tools, "tools", toolcall.MaxTools, func(i int, item json.RawMessage) *apiError {
		var t struct {
			Type *string `json:"type"`
			functionBody
		}
		if e := decode(item, &t, fmt.Sprintf("tools[%d]", i)); e != nil {
			return e
		}
		tool := t.functionBody.tool()
		switch kind := stringOf(t.Type); kind {
		case "function":
		case "custom":
			tool.Parameters = customTool
			c.custom[tool.Name] = true
		default:
			c.warnings = append(c.warnings, fmt.Sprintf("tools[%d], %q, is not run here and was left out", i,
				clip(kind)))
			return nil
		}
		c.Tools = append(c.Tools, tool)
		return nil
	})
	if e == nil {
		e = checkTools(&c.Request)
	}
	return e
}

// messages reads instructions and input.
func (b *responsesBody) messages(r *api.Request) *apiError {
	if b.Instructions != nil && *b.Instructions != "" {
		r.Messages = append(r.Messages, api.Message{Role: "system", Content: *b.Instructions})
	}
	if isEmpty(b.Input) {
		return invalid("input", "is missing; send text or a list of items")
	}
	if b.Input[0] == '"' {
		var text string
		e := decode(b.Input, &text, "input")
		r.Messages = append(r.Messages, api.Message{Role: "user", Content: text})
		return e
	}
	var from []int // the item of each message
	e := each(b.Input, "input", MaxMessages, func(i int, item json.RawMessage) *apiError {
		e := inputItem(r, item, fmt.Sprintf("input[%d]", i))
		for len(from) < len(r.Messages) {
			from = append(from, i)
		}
		return e
	})
	if e != nil {
		return e
	}
	if len(r.Messages) == 0 {
		return invalid("input", "is empty; send text or at least one item")
	}
	return checkResults(r.Messages, func(i int) string { return fmt.Sprintf("input[%d].call_id", from[i]) })
}

// inputItem adds an item of the input to the messages.
func inputItem(r *api.Request, raw json.RawMessage, at string) *apiError {
	var item struct {
		Type      string          `json:"type"`
		Role      string          `json:"role"`
		Content   json.RawMessage `json:"content"`
		CallID    string          `json:"call_id"`
		Name      string          `json:"name"`
		Arguments string          `json:"arguments"`
		Input     string          `json:"input"`
		Output    json.RawMessage `json:"output"`
	}
	if e := decode(raw, &item, at); e != nil {
		return e
	}
	m := api.Message{}
	var e *apiError
	switch item.Type {
	case "", "message":
		known := false
		if m.Role, known = roles[item.Role]; !known || m.Role == "tool" {
			return invalid(at+".role", "is %q and must be system, developer, user or assistant", clip(item.Role))
		}
		m.Content, e = parseContent(item.Content, at+".content", m.Role)
	case "function_call", "custom_tool_call":
		if item.Type == "custom_tool_call" {
			item.Arguments = string(append(appendString([]byte(`{"input":`), item.Input), '}'))
		}
		call, e := checkCall(item.CallID, item.Name, item.Arguments, at+".arguments")
		if last := len(r.Messages) - 1; last >= 0 && r.Messages[last].Role == "assistant" {
			r.Messages[last].Calls = append(r.Messages[last].Calls, call)
			return e
		}
		r.Messages = append(r.Messages, api.Message{Role: "assistant", Calls: []api.ToolCall{call}})
		return e
	case "function_call_output", "custom_tool_call_output":
		m.Role, m.CallID = "tool", item.CallID
		m.Content, e = parseContent(item.Output, at+".output", m.Role)
	case "reasoning":
		return nil // of an answer that is over
	default:
		return invalid(at+".type", "is %q; there are message, function_call and function_call_output", clip(item.Type))
	}
	r.Messages = append(r.Messages, m)
	return e
}

// responses is the handler of /v1/responses.
func (s *Server) responses(w http.ResponseWriter, r *http.Request) {
	s.answering(w, r, parseResponses, func(x *exchange, r *http.Request, c *call) {
		out := newStream(newAnswer(s.gen.Models()[0].ID, true), x, c, &s.opts)
		s.written(x, r, c, out, &response{stream: out, call: c})
	})
}
