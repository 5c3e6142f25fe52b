// Package responses serves OpenAI's responses API and keeps answers, so that later requests can
// continue them.
package responses

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"sandwich/runtime/api"
	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/conversation"
	"sandwich/runtime/server/exchange"
	"sandwich/runtime/server/fields"
	"sandwich/runtime/server/generation"
	"sandwich/runtime/server/jsontext"
	"sandwich/runtime/server/request"
)

// API serves /v1/responses and keeps its answers.
type API struct {
	*generation.Runner
	answers *store
}

// New returns an API without stored answers.
func New(r *generation.Runner) *API {
	return &API{r, newStore(storedBytes)}
}

// responsesBody is the body of /v1/responses. Other fields are accepted and ignored.
type responsesBody struct {
	Model              *string           `json:"model"`
	Stream             *bool             `json:"stream"`
	Input              json.RawMessage   `json:"input"`
	Instructions       *string           `json:"instructions"`
	Tools              json.RawMessage   `json:"tools"`
	ToolChoice         json.RawMessage   `json:"tool_choice"`
	ParallelToolCalls  *bool             `json:"parallel_tool_calls"`
	MaxOutputTokens    *jsontext.Integer `json:"max_output_tokens"`
	Temperature        *float64          `json:"temperature"`
	TopP               *float64          `json:"top_p"`
	Seed               *jsontext.Integer `json:"seed"`
	ServiceTier        *string           `json:"service_tier"`
	PreviousResponseID *string           `json:"previous_response_id"`
	Store              *bool             `json:"store"`
	Metadata           json.RawMessage   `json:"metadata"`
	Background         *bool             `json:"background"`
	Conversation       json.RawMessage   `json:"conversation"`
	Prompt             json.RawMessage   `json:"prompt"`
	Text               *struct {
		Format json.RawMessage `json:"format"`
	} `json:"text"`
	Reasoning *struct {
		Effort *string `json:"effort"`
	} `json:"reasoning"`
	Kwargs           json.RawMessage   `json:"chat_template_kwargs"`
	Include          []string          `json:"include"`
	TopLogprobs      *jsontext.Integer `json:"top_logprobs"`
	Truncation       json.RawMessage   `json:"truncation"`
	ClientMetadata   json.RawMessage   `json:"client_metadata"`
	StreamOptions    json.RawMessage   `json:"stream_options"`
	SafetyIdentifier json.RawMessage   `json:"safety_identifier"`
	PromptCacheKey   json.RawMessage   `json:"prompt_cache_key"`
}

var responsesFields = fields.Names[responsesBody]()

// createRequest is a request of /v1/responses.
type createRequest struct {
	*request.Call
	body       responsesBody
	answers    *store
	maxBytes   int64             // maximum size in bytes of the answers that it continues
	salt       [32]byte          // of the API key
	previous   *turn             // the answer that it continues, held until end
	items      []json.RawMessage // own items, to be stored with the answer
	store      bool
	reasoning  string // for the next assistant message
	history    conversation.History
	namespaced map[string]namespaced // tools of namespaces, by qualified name
}

// parse checks the body.
func (a *createRequest) parse(data []byte) (*request.Call, *apierr.Error) {
	b := &a.body
	if e := fields.Decode(data, b, ""); e != nil {
		return nil, e
	}
	unknown, e := fields.Check(data, responsesFields())
	if e != nil {
		return nil, e
	}
	switch {
	case b.Background != nil && *b.Background:
		return nil, apierr.Invalid("background", "is not supported; leave it out")
	case !jsontext.IsEmpty(b.Conversation):
		return nil, apierr.Invalid("conversation", "is not supported; continue with previous_response_id")
	case !jsontext.IsEmpty(b.Prompt):
		return nil, apierr.Invalid("prompt", "is not supported: the server stores no prompt templates; "+
			"send instructions and input")
	}
	shared := request.Common{Stream: b.Stream, MaxTokens: b.MaxOutputTokens, Temperature: b.Temperature, TopP: b.TopP,
		Seed: b.Seed, ServiceTier: b.ServiceTier}
	if b.Text != nil {
		shared.ResponseFormat = b.Text.Format
	}
	if a.Call, e = shared.Check(); e != nil {
		return nil, e
	}
	a.Unknown = unknown
	how := request.TemplateOptions{Kwargs: b.Kwargs}
	if b.Reasoning != nil {
		how.Effort = b.Reasoning.Effort
	}
	if e = how.Apply(&a.Request, "reasoning.effort"); e != nil {
		return nil, e
	}
	if a.TopLogprobs, e = fields.Integer(b.TopLogprobs, "top_logprobs", 0, request.MaxTopLogprobs, 0); e != nil {
		return nil, e
	}
	a.Logprobs = a.TopLogprobs > 0 || slices.Contains(b.Include, "message.output_text.logprobs")
	a.store = b.Store == nil || *b.Store
	a.OneCall = b.ParallelToolCalls != nil && !*b.ParallelToolCalls
	if a.ToolChoice, e = request.ParseToolChoice(b.ToolChoice); e != nil {
		return nil, e
	}
	if e := a.tools(); e != nil {
		return nil, e
	}
	if e := a.messages(); e != nil {
		return nil, e
	}
	if !jsontext.IsEmpty(b.PromptCacheKey) {
		a.MarkPreamble()
	}
	return a.Call, nil
}

// end releases the answer that the request continues.
func (a *createRequest) end() { a.answers.release(a.previous) }

// Create handles /v1/responses.
func (s *API) Create(w http.ResponseWriter, r *http.Request) {
	a := &createRequest{answers: s.answers, maxBytes: s.Limits.MaxBody, salt: w.(*exchange.Exchange).Salt}
	defer a.end()
	s.Handle(w, r, a.parse, func(x *exchange.Exchange, r *http.Request, c *request.Call, g generation.Generator) {
		out := exchange.NewStream(exchange.NewAnswer(g.Model().ID, true), x, s.Limits.Heartbeat)
		w := &response{Stream: out, asked: a}
		out.KeepAlive = w.waiting
		s.Respond(x, r, c, g, out, w)
	})
}

// messages reads the instructions, the turns that the request continues, and the input.
// Instructions apply to this request only.
func (a *createRequest) messages() *apierr.Error {
	b, h := &a.body, &a.history
	h.Warn = a.Warnings
	if b.Instructions != nil && *b.Instructions != "" {
		h.AddTurn("system", &conversation.Content{Texts: []string{*b.Instructions}})
	}
	before := h.Len()
	read := func(item json.RawMessage, at string) *apierr.Error {
		e := a.item(item, at)
		if h.Len() > request.MaxMessages {
			return apierr.Invalid(at, "exceeds the %d messages accepted; start a new conversation with the relevant "+
				"messages as input", request.MaxMessages)
		}
		return e
	}
	if e := a.earlier(read); e != nil {
		return e
	}
	switch {
	case jsontext.IsEmpty(b.Input) && a.previous == nil:
		return apierr.Invalid("input", "is missing or empty; send text or a list of items")
	case jsontext.IsEmpty(b.Input):
	case b.Input[0] == '"':
		if e := read(b.Input, "input"); e != nil {
			return e
		}
	default:
		if e := fields.Each(b.Input, "input", request.MaxMessages, func(i int, item json.RawMessage) *apierr.Error {
			return read(item, fmt.Sprintf("input[%d]", i))
		}); e != nil {
			return e
		}
	}
	if h.Unchanged(before) {
		return apierr.Invalid("input", "contains no text or message; send at least one")
	}
	var e *apierr.Error
	a.Messages, e = h.Finish("input")
	return e
}

// earlier reads the turns that the request continues.
func (a *createRequest) earlier(read func(item json.RawMessage, at string) *apierr.Error) *apierr.Error {
	const field = "previous_response_id"
	id := fields.String(a.body.PreviousResponseID)
	if id == "" {
		return nil
	}
	if a.previous = a.answers.hold(a.salt, id); a.previous == nil {
		e := noResponse(http.StatusBadRequest, id)
		e.Param, e.Code = new(string), new(string)
		*e.Param, *e.Code = field, "previous_response_not_found"
		return e
	}
	bytes := int64(0)
	for t := a.previous; t != nil && bytes <= a.maxBytes; t = t.previous {
		bytes += t.bytes
	}
	if bytes > a.maxBytes {
		return apierr.Invalid(field, "continues more than the %d bytes accepted; start a new conversation with the "+
			"relevant messages as input", a.maxBytes)
	}
	for _, t := range a.previous.chain() {
		for _, item := range slices.Concat(t.input, t.output) {
			if e := read(item, field); e != nil {
				return e
			}
		}
	}
	a.items = nil // stored with their own turns
	return nil
}

// item adds an item of the input to the history.
func (a *createRequest) item(raw json.RawMessage, at string) *apierr.Error {
	h := &a.history
	if _, text := jsontext.String(raw); text {
		raw = append(append([]byte(`{"role":"user","content":`), raw...), '}')
	}
	var head struct {
		Type string  `json:"type"`
		ID   string  `json:"id"`
		Role *string `json:"role"`
	}
	if !h.Decode(raw, &head, at) {
		return nil
	}
	if head.Type == "item_reference" || head.Type == "" && head.Role == nil && head.ID != "" {
		stored := a.answers.item(a.salt, head.ID)
		if stored == nil {
			h.Warn.Add("%s.id: no stored answer contains the item %q, which was left out", at, jsontext.Clip(head.ID))
			return nil
		}
		raw, head.Type, head.Role = stored, "", nil
		h.DecodeFields(raw, &head, at)
	}
	a.items = append(a.items, raw)
	switch head.Type {
	case "", "message":
		if head.Type == "" && head.Role == nil {
			h.LeaveOut(at, "an item without a kind and a role")
			return nil
		}
		return a.messageItem(raw, h.MessageRole(head.Role, at), at)
	case "function_call", "custom_tool_call":
		a.callItem(raw, at)
	case "function_call_output", "custom_tool_call_output":
		return a.outputItem(raw, at)
	case "reasoning":
		return a.reasoningItem(raw, at)
	default:
		h.LeaveOut(at, fmt.Sprintf("an item of the kind %q", jsontext.Clip(head.Type)))
	}
	return nil
}

// messageItem adds a message.
func (a *createRequest) messageItem(raw json.RawMessage, role, at string) *apierr.Error {
	var item struct {
		Content json.RawMessage `json:"content"`
	}
	a.history.DecodeFields(raw, &item, at)
	c, e := conversation.ReadContent(item.Content, at+".content")
	if role != "assistant" {
		a.history.AddTurn(role, &c)
		return e
	}
	a.history.AddAnswer(api.Message{Reasoning: a.reasoning}, &c)
	a.reasoning = ""
	return e
}

// callItem adds a call to the preceding assistant message, or to a new one.
func (a *createRequest) callItem(raw json.RawMessage, at string) {
	var item struct {
		Type      string          `json:"type"`
		CallID    string          `json:"call_id"`
		Name      string          `json:"name"`
		Namespace string          `json:"namespace"`
		Arguments json.RawMessage `json:"arguments"`
		Input     string          `json:"input"`
	}
	h := &a.history
	h.DecodeFields(raw, &item, at)
	arguments := (&conversation.FunctionCall{Arguments: item.Arguments}).ArgumentsText()
	if item.Type == "custom_tool_call" {
		arguments = conversation.InputArguments(item.Input)
	}
	name := request.QualifiedName(item.Namespace, item.Name)
	if h.AddCall(item.CallID, name, arguments, a.reasoning, at+".arguments") {
		a.reasoning = ""
	}
}

// outputItem adds the result of a call.
func (a *createRequest) outputItem(raw json.RawMessage, at string) *apierr.Error {
	var item struct {
		CallID string          `json:"call_id"`
		Output json.RawMessage `json:"output"`
	}
	a.history.DecodeFields(raw, &item, at)
	var c conversation.Content
	var e *apierr.Error
	if !jsontext.IsNull(item.Output) { // a tool may return nothing
		c, e = conversation.ReadResult(item.Output, at+".output")
	}
	a.history.AddResult(item.CallID, "", &c, at+".call_id")
	return e
}

// reasoningItem keeps reasoning for the next assistant message. The template decides whether the
// model sees it.
func (a *createRequest) reasoningItem(raw json.RawMessage, at string) *apierr.Error {
	var item struct {
		Content json.RawMessage `json:"content"`
		Summary json.RawMessage `json:"summary"`
	}
	a.history.DecodeFields(raw, &item, at)
	list, field := item.Content, at+".content"
	if jsontext.IsEmpty(list) {
		list, field = item.Summary, at+".summary"
	}
	if jsontext.IsEmpty(list) {
		return nil // encrypted or empty
	}
	c, e := conversation.ReadContent(list, field)
	a.history.Report(&c)
	a.reasoning += strings.Join(c.Texts, "")
	return e
}
