package server

import (
	"encoding/json"
	"fmt"
	"net/http"

	"sandwich/runtime/api"
	"sandwich/runtime/toolcall"
)

// messagesBody is the body of /v1/messages, in Anthropic's shape. What else its clients send is
// taken and changes nothing: prefixes are cached without being asked for.
type messagesBody struct {
	Model         *string         `json:"model"`
	Stream        *bool           `json:"stream"`
	System        json.RawMessage `json:"system"`
	Messages      json.RawMessage `json:"messages"`
	MaxTokens     *int64          `json:"max_tokens"`
	StopSequences json.RawMessage `json:"stop_sequences"`
	Temperature   *float64        `json:"temperature"`
	TopP          *float64        `json:"top_p"`
	TopK          *int64          `json:"top_k"`
	Tools         json.RawMessage `json:"tools"`
	ToolChoice    json.RawMessage `json:"tool_choice"`
	OutputFormat  json.RawMessage `json:"output_format"`
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

var messagesFields = jsonNames[messagesBody]()

// parseMessagesCall checks the body of /v1/messages and of its count_tokens.
func parseMessagesCall(data []byte) (*call, *apiError) {
	var b messagesBody
	if e := decode(data, &b, ""); e != nil {
		return nil, e
	}
	unknown, e := checkFields(data, messagesFields())
	if e != nil {
		return nil, e
	}
	if !isEmpty(b.MCPServers) {
		return nil, invalid("mcp_servers", "are not asked from here; send their tools as tools")
	}
	shared := common{Stream: b.Stream, MaxTokens: b.MaxTokens, Temperature: b.Temperature, TopP: b.TopP, TopK: b.TopK,
		ResponseFormat: b.OutputFormat}
	if b.OutputConfig != nil && !isNull(b.OutputConfig.Format) {
		shared.ResponseFormat = b.OutputConfig.Format
	}
	c, e := shared.check()
	if e != nil {
		return nil, e
	}
	c.unknown = unknown
	how, e := thinks(b.Thinking, "thinking")
	if e == nil {
		e = how.tell(&c.Request, "thinking")
	}
	if e != nil {
		return nil, e
	}
	if c.Stop, e = parseStop(b.StopSequences, "stop_sequences"); e != nil {
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

// choice reads {"type":"auto"}, "any", "none", and "tool" with a name.
func (b *messagesBody) choice(r *api.Request) *apiError {
	if isNull(b.ToolChoice) {
		return nil
	}
	var choice struct {
		Type    string `json:"type"`
		Name    string `json:"name"`
		OneCall bool   `json:"disable_parallel_tool_use"`
	}
	if e := decode(b.ToolChoice, &choice, "tool_choice"); e != nil {
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
			return invalid("tool_choice.name", "is missing")
		}
		r.ToolChoice = api.ToolChoice{Mode: api.ToolsRequired, Names: []string{choice.Name}}
	default:
		return invalid("tool_choice.type", "is %q and must be auto, any, tool or none", clip(choice.Type))
	}
	return nil
}

// tools reads tools with a schema. Those that Anthropic defines are left out with a warning.
func (b *messagesBody) tools(c *call) *apiError {
	if isEmpty(b.Tools) {
		return checkTools(&c.Request)
	}
	e := each(b.Tools, "tools", toolcall.MaxTools, func(i int, item json.RawMessage) *apiError {
		var t struct {
			Type        *string         `json:"type"`
			Name        *string         `json:"name"`
			Description *string         `json:"description"`
			InputSchema json.RawMessage `json:"input_schema"`
		}
		if e := decode(item, &t, fmt.Sprintf("tools[%d]", i)); e != nil {
			return e
		}
		if kind := stringOf(t.Type); kind != "" && kind != "custom" {
			c.Warnings.Add("tools[%d], %q, is not known here and was left out", i, clip(kind))
			return nil
		}
		f := functionBody{Name: t.Name, Description: t.Description, Parameters: t.InputSchema}
		c.Tools = append(c.Tools, f.tool())
		return nil
	})
	if e == nil {
		e = checkTools(&c.Request)
	}
	return e
}

// messages is the handler of /v1/messages.
func (s *Server) messages(w http.ResponseWriter, r *http.Request) {
	s.answering(w, r, parseMessagesCall, func(x *exchange, r *http.Request, c *call) {
		out := newStream(newAnswer(s.gen.Models()[0].ID, true), x, &s.opts)
		out.failure = "event: error\ndata: "
		defer out.close()
		if c.stream { // the length of the prompt stands in the first event
			var err error
			if c.Prompt, err = s.gen.Prompt(r.Context(), &c.Request); err != nil {
				if x.status = statusHungUp; !hungUp(r.Context()) {
					x.status = out.fail(asAPIError(causeOf(r.Context(), err), true))
				}
				return
			}
		}
		m := &blocks{stream: out, call: c}
		out.pulse = m.ping
		s.written(x, r, c, out, m)
	})
}

// countTokens is the handler of /v1/messages/count_tokens.
func (s *Server) countTokens(w http.ResponseWriter, r *http.Request) {
	s.answering(w, r, parseMessagesCall, func(x *exchange, r *http.Request, c *call) {
		ids, err := s.gen.Prompt(r.Context(), &c.Request)
		if err != nil {
			s.refused(x, r, err)
			return
		}
		out := appendWarnings(appendInt([]byte(`{"input_tokens":`), len(ids)), c.Warnings.List())
		writeJSON(x, http.StatusOK, append(out, '}'))
	})
}
