// Package ollama serves ollama's API.
package ollama

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

// API serves ollama's endpoints under /api/.
type API struct{ *generation.Runner }

// ollamaBody is the body of /api/chat and /api/generate in ollama's format.
type ollamaBody struct {
	Model       *string           `json:"model"`
	Stream      *bool             `json:"stream"` // default true
	Messages    json.RawMessage   `json:"messages"`
	Tools       json.RawMessage   `json:"tools"`
	Prompt      *string           `json:"prompt"`
	System      *string           `json:"system"`
	Raw         *bool             `json:"raw"`
	Suffix      *string           `json:"suffix"`
	Template    *string           `json:"template"`
	Images      json.RawMessage   `json:"images"`
	Context     json.RawMessage   `json:"context"`
	Format      json.RawMessage   `json:"format"`
	Options     json.RawMessage   `json:"options"`
	Think       json.RawMessage   `json:"think"`
	Logprobs    *bool             `json:"logprobs"`
	TopLogprobs *jsontext.Integer `json:"top_logprobs"`
	KeepAlive   json.RawMessage   `json:"keep_alive"`
	Truncate    json.RawMessage   `json:"truncate"`
	Shift       json.RawMessage   `json:"shift"`
}

// ollamaOptions are the options that affect an answer.
type ollamaOptions struct {
	NumPredict       *jsontext.Integer `json:"num_predict"`
	NumCtx           *jsontext.Integer `json:"num_ctx"`
	Temperature      *float64          `json:"temperature"`
	TopK             *jsontext.Integer `json:"top_k"`
	TopP             *float64          `json:"top_p"`
	MinP             *float64          `json:"min_p"`
	Seed             *jsontext.Integer `json:"seed"`
	Stop             json.RawMessage   `json:"stop"`
	RepeatPenalty    *float64          `json:"repeat_penalty"`
	PresencePenalty  *float64          `json:"presence_penalty"`
	FrequencyPenalty *float64          `json:"frequency_penalty"`
}

// ollamaSampler lists unsupported options that would change an answer, each with the value that
// does not. All other options concern how ollama runs a model.
var ollamaSampler = map[string]string{"mirostat": "0", "tfs_z": "1", "typical_p": "1", "repeat_last_n": "64",
	"penalize_newline": "false", "num_keep": "0"}

var (
	ollamaFields  = fields.Names[ollamaBody]()
	ollamaOptKeys = fields.Names[ollamaOptions]()
)

// ollama's defaults of sampling parameters.
var (
	ollamaTemperature = 0.8
	ollamaTopP        = 0.9
	ollamaTopK        = jsontext.Integer(40)
)

// ollamaCall is a request of ollama's API.
type ollamaCall struct {
	*request.Call
	chat   bool
	numCtx jsontext.Integer // tokens that the client asks for; 0: none
	empty  bool
}

// parse checks the body.
func (o *ollamaCall) parse(data []byte) (*request.Call, *apierr.Error) {
	var b ollamaBody
	if e := fields.Decode(data, &b, ""); e != nil {
		return nil, e
	}
	unknown, e := fields.Check(data, ollamaFields())
	if e != nil {
		return nil, e
	}
	switch {
	case fields.String(b.Suffix) != "":
		return nil, apierr.Invalid("suffix", "is not supported; leave it out")
	case fields.String(b.Template) != "":
		return nil, apierr.Invalid("template", "is not supported; send a rendered prompt with raw set to true")
	case !jsontext.IsEmpty(b.Images) && strings.TrimSpace(fields.String(b.Prompt)) == "":
		return nil, apierr.Invalid("images", "are not supported; the model reads only text")
	}
	if e := o.settings(&b); e != nil {
		return nil, e
	}
	o.Unknown, o.Stream = unknown, b.Stream == nil || *b.Stream
	if !jsontext.IsEmpty(b.Context) {
		o.Warnings.Add("context: is not supported; send earlier messages to /api/chat")
	}
	if !jsontext.IsEmpty(b.Images) {
		o.Warnings.Add("images: were left out; the model reads only text")
	}
	how, e := request.ParseThinking(b.Think, "think")
	if e == nil {
		e = how.Apply(&o.Request, "think")
	}
	if e != nil {
		return nil, e
	}
	o.Logprobs = b.Logprobs != nil && *b.Logprobs
	if o.TopLogprobs, e = fields.Integer(b.TopLogprobs, "top_logprobs", 0, request.MaxTopLogprobs, 0); e != nil {
		return nil, e
	}
	if o.chat {
		return o.Call, o.messages(&b)
	}
	o.empty = fields.String(b.Prompt) == ""
	if b.Raw != nil && *b.Raw {
		o.Text = fields.String(b.Prompt)
		return o.Call, nil
	}
	if s := fields.String(b.System); s != "" {
		o.Messages = append(o.Messages, api.Message{Role: "system", Content: s})
	}
	o.Messages = append(o.Messages, api.Message{Role: "user", Content: fields.String(b.Prompt)})
	return o.Call, nil
}

// settings reads options and format.
func (o *ollamaCall) settings(b *ollamaBody) *apierr.Error {
	var opts ollamaOptions
	var warnings []string
	if !jsontext.IsEmpty(b.Options) {
		if e := fields.Decode(b.Options, &opts, "options"); e != nil {
			return e
		}
		for name, value := range jsontext.Members(b.Options) {
			if neutral, known := ollamaSampler[name]; known && !ollamaOptKeys()[name] && !fields.Neutral(value,
				neutral) {
				warnings = append(warnings, fmt.Sprintf("options.%s: is not supported and was ignored", name))
			}
		}
	}
	if opts.NumCtx != nil {
		o.numCtx = *opts.NumCtx
	}
	if opts.NumPredict != nil && *opts.NumPredict < 0 {
		opts.NumPredict = nil // -1 and -2: up to the end of the context
	}
	if opts.Temperature == nil {
		opts.Temperature = &ollamaTemperature
	}
	if opts.TopP == nil {
		opts.TopP = &ollamaTopP
	}
	if opts.TopK == nil {
		opts.TopK = &ollamaTopK
	}
	shared := request.Common{MaxTokens: opts.NumPredict, Temperature: opts.Temperature, TopK: opts.TopK,
		TopP: opts.TopP,
		MinP: opts.MinP, Seed: opts.Seed, Stop: opts.Stop, RepeatPenalty: opts.RepeatPenalty,
		PresencePenalty: opts.PresencePenalty, FrequencyPenalty: opts.FrequencyPenalty}
	var e *apierr.Error
	if o.Call, e = shared.Check(); e != nil {
		return e
	}
	for _, w := range warnings {
		o.Warnings.Add("%s", w)
	}
	switch {
	case jsontext.IsEmpty(b.Format):
	case string(b.Format) == `"json"`:
		o.Format = api.Format{Kind: api.JSONObject, Param: "format"}
	case b.Format[0] == '{':
		o.Format = api.Format{Kind: api.JSONSchema, Text: string(b.Format), Param: "format"}
	default:
		return apierr.Invalid("format", `must be "json" or a JSON schema`)
	}
	return nil
}

// ollamaMessage is a message of a chat. Calls may lack ids; results then follow them in order or
// name the tool.
type ollamaMessage struct {
	Role       *string         `json:"role"`
	Content    json.RawMessage `json:"content"`
	Thinking   string          `json:"thinking"`
	Images     json.RawMessage `json:"images"`
	ToolCalls  json.RawMessage `json:"tool_calls"`
	ToolName   string          `json:"tool_name"`
	Name       string          `json:"name"`
	ToolCallID string          `json:"tool_call_id"`
}

// messages reads messages and tools.
func (o *ollamaCall) messages(b *ollamaBody) *apierr.Error {
	h := conversation.History{Warn: o.Warnings}
	e := fields.Each(jsontext.OrElse(b.Messages, "[]"), "messages", request.MaxMessages, func(i int,
		item json.RawMessage) *apierr.Error {
		return addOllamaMessage(&h, item, fmt.Sprintf("messages[%d]", i))
	})
	if e != nil {
		return e
	}
	if o.empty = h.Empty(); o.empty {
		o.Messages = []api.Message{}
	} else if o.Messages, e = h.Finish("messages"); e != nil {
		return e
	}
	return o.tools(b.Tools)
}

// addOllamaMessage adds a message of /api/chat.
func addOllamaMessage(h *conversation.History, raw json.RawMessage, at string) *apierr.Error {
	var m ollamaMessage
	if !h.Decode(raw, &m, at) {
		return nil
	}
	role := h.Role(m.Role, at)
	read := conversation.ReadContent
	if role == "tool" {
		read = conversation.ReadResult
	}
	var c conversation.Content
	var e *apierr.Error
	if jsontext.IsNull(m.Content) {
		c.Texts = []string{""} // messages with only images or calls have no content
	} else if c, e = read(m.Content, at+".content"); e != nil {
		return e
	}
	if !jsontext.IsEmpty(m.Images) {
		c.AddUnusable(at+".images", "an image", "are not supported; the model reads only text")
	}
	switch role {
	case "tool":
		h.AddResult(m.ToolCallID, m.ToolName+m.Name, &c, at+".tool_call_id")
	case "assistant":
		out := api.Message{Reasoning: m.Thinking}
		if out.Calls, e = h.ReadCalls(m.ToolCalls, nil, at); e == nil {
			h.AddAnswer(out, &c)
		}
	default:
		if !jsontext.IsEmpty(m.ToolCalls) {
			h.Warn.Add("%s.tool_calls: only assistant messages may have calls; they were left out", at)
		}
		h.AddTurn(role, &c)
	}
	return e
}

// tools reads the tools of a chat.
func (o *ollamaCall) tools(raw json.RawMessage) *apierr.Error {
	if jsontext.IsEmpty(raw) {
		return nil
	}
	e := fields.Each(raw, "tools", toolcall.MaxTools, func(i int, item json.RawMessage) *apierr.Error {
		var t request.Tool
		at := fmt.Sprintf("tools[%d]", i)
		if e := fields.Decode(item, &t, at); e != nil {
			return e
		}
		if t.Function == nil {
			return apierr.Invalid(at+".function", "is missing; send the name and parameters of a function")
		}
		o.Tools = append(o.Tools, t.Function.Tool())
		return nil
	})
	if e == nil {
		e = request.CheckTools(&o.Request)
	}
	return e
}

// Answer returns the handler of /api/chat or /api/generate.
func (s *API) Answer(chat bool) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		o := &ollamaCall{chat: chat}
		s.Handle(w, r, o.parse, func(x *exchange.Exchange, r *http.Request, c *request.Call, g generation.Generator) {
			out := exchange.NewStream(exchange.NewAnswer(g.Model().ID, chat), x, s.Limits.Heartbeat)
			lines := newLines(out, o)
			o.checkContext(g.Model().Context)
			if o.empty { // clients load a model with an empty request
				out.Close()
				if _, err := g.Encode(r.Context(), "", false, false); err != nil {
					s.Refuse(x, r, err)
					return
				}
				lines.loaded()
				return
			}
			s.Respond(x, r, c, g, out, lines)
		})
	}
}

// checkContext adds a warning if the client asks for more than the context of the model in tokens.
func (o *ollamaCall) checkContext(tokens int) {
	if o.numCtx > jsontext.Integer(tokens) {
		o.Warnings.Add("options.num_ctx: asks for %d tokens, but the context has %d (--ctx)", o.numCtx, tokens)
	}
}

// EncodeError encodes an error in ollama's format.
func EncodeError(e *apierr.Error) []byte {
	return append(jsontext.AppendString([]byte(`{"error":`), e.Message), '}')
}

// Manages reports whether a path belongs to a call of ollama's API that downloads or changes
// models, none of which is supported.
func Manages(path string) bool {
	for _, call := range []string{"pull", "push", "create", "copy", "delete", "blobs"} {
		if rest, ok := strings.CutPrefix(path, "/api/"+call); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}

// Owns reports whether a path belongs to ollama's API, including unsupported endpoints.
func Owns(path string) bool { return strings.HasPrefix(path, "/api/") }
