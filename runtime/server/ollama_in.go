package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"sandwich/runtime/api"
	"sandwich/runtime/toolcall"
)

// ollamaBody is the body of /api/chat and /api/generate in ollama's format.
type ollamaBody struct {
	Model       *string         `json:"model"`  // default true
	Stream      *bool           `json:"stream"` // true where it is not said
	Messages    json.RawMessage `json:"messages"`
	Tools       json.RawMessage `json:"tools"`
	Prompt      *string         `json:"prompt"`
	System      *string         `json:"system"`
	Raw         *bool           `json:"raw"`
	Suffix      *string         `json:"suffix"`
	Template    *string         `json:"template"`
	Images      json.RawMessage `json:"images"`
	Context     json.RawMessage `json:"context"`
	Format      json.RawMessage `json:"format"`
	Options     json.RawMessage `json:"options"`
	Think       json.RawMessage `json:"think"`
	Logprobs    *bool           `json:"logprobs"`
	TopLogprobs *wholeNumber    `json:"top_logprobs"`
	KeepAlive   json.RawMessage `json:"keep_alive"`
	Truncate    json.RawMessage `json:"truncate"`
	Shift       json.RawMessage `json:"shift"`
}

// ollamaOptions are the options that affect an answer.
type ollamaOptions struct {
	NumPredict       *wholeNumber    `json:"num_predict"`
	NumCtx           *wholeNumber    `json:"num_ctx"`
	Temperature      *float64        `json:"temperature"`
	TopK             *wholeNumber    `json:"top_k"`
	TopP             *float64        `json:"top_p"`
	MinP             *float64        `json:"min_p"`
	Seed             *wholeNumber    `json:"seed"`
	Stop             json.RawMessage `json:"stop"`
	RepeatPenalty    *float64        `json:"repeat_penalty"`
	PresencePenalty  *float64        `json:"presence_penalty"`
	FrequencyPenalty *float64        `json:"frequency_penalty"`
}

// ollamaSampler lists unsupported options that would change an answer, each with the value that
// does not. All other options concern how ollama runs a model.
var ollamaSampler = map[string]string{"mirostat": "0", "tfs_z": "1", "typical_p": "1", "repeat_last_n": "64",
	"penalize_newline": "false", "num_keep": "0"}

var (
	ollamaFields  = jsonNames[ollamaBody]()
	ollamaOptKeys = jsonNames[ollamaOptions]()
)

// ollama's defaults of sampling parameters.
var (
	ollamaTemperature = 0.8
	ollamaTopP        = 0.9
	ollamaTopK        = wholeNumber(40)
)

// ollamaCall is a request of ollama's API.
type ollamaCall struct {
	*call
	chat    bool
	context int // context of the served model in tokens
	empty   bool
}

// parse checks the body.
func (o *ollamaCall) parse(data []byte) (*call, *apiError) {
	var b ollamaBody
	if e := decode(data, &b, ""); e != nil {
		return nil, e
	}
	unknown, e := checkFields(data, ollamaFields())
	if e != nil {
		return nil, e
	}
	switch {
	case stringOf(b.Suffix) != "":
		return nil, invalid("suffix", "is not supported; leave it out")
	case stringOf(b.Template) != "":
		return nil, invalid("template", "is not supported; send a rendered prompt with raw set to true")
	case !isEmpty(b.Images) && strings.TrimSpace(stringOf(b.Prompt)) == "":
		return nil, invalid("images", "are not supported; the model reads only text")
	}
	if e := o.settings(&b); e != nil {
		return nil, e
	}
	o.unknown, o.stream = unknown, b.Stream == nil || *b.Stream
	if !isEmpty(b.Context) {
		o.Warnings.Add("context: is not supported; send earlier messages to /api/chat")
	}
	if !isEmpty(b.Images) {
		o.Warnings.Add("images: were left out; the model reads only text")
	}
	how, e := thinks(b.Think, "think")
	if e == nil {
		e = how.tell(&o.Request, "think")
	}
	if e != nil {
		return nil, e
	}
	o.Logprobs = b.Logprobs != nil && *b.Logprobs
	if o.TopLogprobs, e = integer(b.TopLogprobs, "top_logprobs", 0, MaxTopLogprobs, 0); e != nil {
		return nil, e
	}
	if o.chat {
		return o.call, o.messages(&b)
	}
	o.empty = stringOf(b.Prompt) == ""
	if b.Raw != nil && *b.Raw {
		o.Text = stringOf(b.Prompt)
		return o.call, nil
	}
	if s := stringOf(b.System); s != "" {
		o.Messages = append(o.Messages, api.Message{Role: "system", Content: s})
	}
	o.Messages = append(o.Messages, api.Message{Role: "user", Content: stringOf(b.Prompt)})
	return o.call, nil
}

// settings reads options and format.
func (o *ollamaCall) settings(b *ollamaBody) *apiError {
	var opts ollamaOptions
	var warnings []string
	if !isEmpty(b.Options) {
		if e := decode(b.Options, &opts, "options"); e != nil {
			return e
		}
		for name, value := range members(b.Options) {
			if neutral, known := ollamaSampler[name]; known && !ollamaOptKeys()[name] && !isNeutral(value, neutral) {
				warnings = append(warnings, fmt.Sprintf("options.%s: is not supported and was ignored", name))
			}
		}
	}
	if opts.NumCtx != nil && *opts.NumCtx > wholeNumber(o.context) {
		warnings = append(warnings, fmt.Sprintf("options.num_ctx: asks for %d tokens, but the context has %d (--ctx)",
			*opts.NumCtx, o.context))
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
	shared := common{MaxTokens: opts.NumPredict, Temperature: opts.Temperature, TopK: opts.TopK, TopP: opts.TopP,
		MinP: opts.MinP, Seed: opts.Seed, Stop: opts.Stop, RepeatPenalty: opts.RepeatPenalty,
		PresencePenalty: opts.PresencePenalty, FrequencyPenalty: opts.FrequencyPenalty}
	var e *apiError
	if o.call, e = shared.check(); e != nil {
		return e
	}
	for _, w := range warnings {
		o.Warnings.Add("%s", w)
	}
	switch {
	case isEmpty(b.Format):
	case string(b.Format) == `"json"`:
		o.Format = api.Format{Kind: api.JSONObject, Param: "format"}
	case b.Format[0] == '{':
		o.Format = api.Format{Kind: api.JSONSchema, Text: string(b.Format), Param: "format"}
	default:
		return invalid("format", `must be "json" or a JSON schema`)
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
func (o *ollamaCall) messages(b *ollamaBody) *apiError {
	h := history{warn: o.Warnings}
	e := each(orElse(b.Messages, "[]"), "messages", MaxMessages, func(i int, item json.RawMessage) *apiError {
		return h.ollama(item, fmt.Sprintf("messages[%d]", i))
	})
	if e != nil {
		return e
	}
	if o.empty = h.refusal == nil && len(h.messages) == 0; o.empty {
		o.Messages = []api.Message{}
	} else if o.Messages, e = h.end("messages"); e != nil {
		return e
	}
	return o.tools(b.Tools)
}

// ollama adds a message of /api/chat.
func (h *history) ollama(raw json.RawMessage, at string) *apiError {
	var m ollamaMessage
	if !h.object(raw, &m, at) {
		return nil
	}
	role := h.role(m.Role, at)
	read := readContent
	if role == "tool" {
		read = readResult
	}
	var c content
	var e *apiError
	if isNull(m.Content) {
		c.texts = []string{""} // messages with only images or calls have no content
	} else if c, e = read(m.Content, at+".content"); e != nil {
		return e
	}
	if !isEmpty(m.Images) {
		c.lose(gap{at: at + ".images", what: "an image", fault: "are not supported; the model reads only text"})
	}
	switch role {
	case "tool":
		h.result(m.ToolCallID, m.ToolName+m.Name, &c, at+".tool_call_id")
	case "assistant":
		out := api.Message{Reasoning: m.Thinking}
		if out.Calls, e = h.callList(m.ToolCalls, nil, at); e == nil {
			h.answer(out, &c)
		}
	default:
		if !isEmpty(m.ToolCalls) {
			h.warn.Add("%s.tool_calls: only assistant messages may have calls; they were left out", at)
		}
		h.say(role, &c)
	}
	return e
}

// tools reads the tools of a chat.
func (o *ollamaCall) tools(raw json.RawMessage) *apiError {
	if isEmpty(raw) {
		return nil
	}
	e := each(raw, "tools", toolcall.MaxTools, func(i int, item json.RawMessage) *apiError {
		var t toolBody
		at := fmt.Sprintf("tools[%d]", i)
		if e := decode(item, &t, at); e != nil {
			return e
		}
		if t.Function == nil {
			return invalid(at+".function", "is missing")
		}
		o.Tools = append(o.Tools, t.Function.tool())
		return nil
	})
	if e == nil {
		e = checkTools(&o.Request)
	}
	return e
}

// ollama returns the handler of /api/chat or /api/generate.
func (s *Server) ollama(chat bool) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		o := &ollamaCall{chat: chat, context: s.gen.Models()[0].Context}
		s.answering(w, r, o.parse, func(x *exchange, r *http.Request, c *call) {
			out := newStream(newAnswer(s.gen.Models()[0].ID, chat), x, &s.opts)
			lines := newLines(out, o)
			if o.empty { // clients load a model with an empty request
				out.close()
				lines.loaded()
				return
			}
			s.written(x, r, c, out, lines)
		})
	}
}

// ollamaError encodes an error in ollama's format.
func ollamaError(e *apiError) []byte {
	return append(appendString([]byte(`{"error":`), e.Message), '}')
}

// isOllama reports whether a path belongs to ollama's API, including unsupported endpoints.
func isOllama(path string) bool { return strings.HasPrefix(path, "/api/") }
