package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"sandwich/runtime/api"
)

// responsesBody is the body of /v1/responses. Other fields are accepted and ignored.
type responsesBody struct {
	Model              *string         `json:"model"`
	Stream             *bool           `json:"stream"`
	Input              json.RawMessage `json:"input"`
	Instructions       *string         `json:"instructions"`
	Tools              json.RawMessage `json:"tools"`
	ToolChoice         json.RawMessage `json:"tool_choice"`
	ParallelToolCalls  *bool           `json:"parallel_tool_calls"`
	MaxOutputTokens    *wholeNumber    `json:"max_output_tokens"`
	Temperature        *float64        `json:"temperature"`
	TopP               *float64        `json:"top_p"`
	Seed               *wholeNumber    `json:"seed"`
	ServiceTier        *string         `json:"service_tier"`
	PreviousResponseID *string         `json:"previous_response_id"`
	Store              *bool           `json:"store"`
	Metadata           json.RawMessage `json:"metadata"`
	Background         *bool           `json:"background"`
	Conversation       json.RawMessage `json:"conversation"`
	Prompt             json.RawMessage `json:"prompt"`
	Text               *struct {
		Format json.RawMessage `json:"format"`
	} `json:"text"`
	Reasoning *struct {
		Effort *string `json:"effort"`
	} `json:"reasoning"`
	Kwargs           json.RawMessage `json:"chat_template_kwargs"`
	Include          []string        `json:"include"`
	TopLogprobs      *wholeNumber    `json:"top_logprobs"`
	Truncation       json.RawMessage `json:"truncation"`
	ClientMetadata   json.RawMessage `json:"client_metadata"`
	StreamOptions    json.RawMessage `json:"stream_options"`
	SafetyIdentifier json.RawMessage `json:"safety_identifier"`
}

var responsesFields = jsonNames[responsesBody]()

// asking is a request of /v1/responses.
type asking struct {
	*call
	body      responsesBody
	answers   *store
	most      int64             // maximum size in bytes of the answers that it continues
	salt      [32]byte          // of the API key
	before    *turn             // the answer that it continues, held until end
	kept      []json.RawMessage // own items, to be stored with the answer
	store     bool
	reasoning string // for the next assistant message
	history   history
	spaced    map[string]spaced // tools of namespaces, by qualified name
}

// parse checks the body.
func (a *asking) parse(data []byte) (*call, *apiError) {
	b := &a.body
	if e := decode(data, b, ""); e != nil {
		return nil, e
	}
	unknown, e := checkFields(data, responsesFields())
	if e != nil {
		return nil, e
	}
	switch {
	case b.Background != nil && *b.Background:
		return nil, invalid("background", "is not supported; leave it out")
	case !isEmpty(b.Conversation):
		return nil, invalid("conversation", "is not supported; continue with previous_response_id")
	case !isEmpty(b.Prompt):
		return nil, invalid("prompt", "is not supported: the server stores no prompt templates; "+
			"send instructions and input")
	}
	shared := common{Stream: b.Stream, MaxTokens: b.MaxOutputTokens, Temperature: b.Temperature, TopP: b.TopP,
		Seed: b.Seed, ServiceTier: b.ServiceTier}
	if b.Text != nil {
		shared.ResponseFormat = b.Text.Format
	}
	if a.call, e = shared.check(); e != nil {
		return nil, e
	}
	a.unknown = unknown
	how := told{Kwargs: b.Kwargs}
	if b.Reasoning != nil {
		how.Effort = b.Reasoning.Effort
	}
	if e = how.tell(&a.Request, "reasoning.effort"); e != nil {
		return nil, e
	}
	if a.TopLogprobs, e = integer(b.TopLogprobs, "top_logprobs", 0, MaxTopLogprobs, 0); e != nil {
		return nil, e
	}
	a.Logprobs = a.TopLogprobs > 0 || slices.Contains(b.Include, "message.output_text.logprobs")
	a.store = b.Store == nil || *b.Store
	a.OneCall = b.ParallelToolCalls != nil && !*b.ParallelToolCalls
	if a.ToolChoice, e = parseToolChoice(b.ToolChoice); e != nil {
		return nil, e
	}
	if e := a.tools(); e != nil {
		return nil, e
	}
	return a.call, a.messages()
}

// end releases the answer that the request continues.
func (a *asking) end() { a.answers.release(a.before) }

// responses handles /v1/responses.
func (s *Server) responses(w http.ResponseWriter, r *http.Request) {
	a := &asking{answers: s.answers, most: s.opts.MaxBody, salt: w.(*exchange).salt}
	defer a.end()
	s.answering(w, r, a.parse, func(x *exchange, r *http.Request, c *call) {
		out := newStream(newAnswer(s.gen.Models()[0].ID, true), x, &s.opts)
		w := &response{stream: out, asked: a}
		out.pulse = w.waiting
		s.written(x, r, c, out, w)
	})
}

// messages reads the instructions, the turns that the request continues, and the input.
// Instructions apply to this request only.
func (a *asking) messages() *apiError {
	b, h := &a.body, &a.history
	h.warn = a.Warnings
	if b.Instructions != nil && *b.Instructions != "" {
		h.say("system", &content{texts: []string{*b.Instructions}})
	}
	before := len(h.messages)
	read := func(item json.RawMessage, at string) *apiError {
		e := a.item(item, at)
		if len(h.messages)+h.late > MaxMessages {
			return invalid(at, "exceeds the %d messages accepted; start a new conversation with the relevant "+
				"messages as input", MaxMessages)
		}
		return e
	}
	if e := a.earlier(read); e != nil {
		return e
	}
	switch {
	case isEmpty(b.Input) && a.before == nil:
		return invalid("input", "is missing or empty; send text or a list of items")
	case isEmpty(b.Input):
	case b.Input[0] == '"':
		if e := read(b.Input, "input"); e != nil {
			return e
		}
	default:
		if e := each(b.Input, "input", MaxMessages, func(i int, item json.RawMessage) *apiError {
			return read(item, fmt.Sprintf("input[%d]", i))
		}); e != nil {
			return e
		}
	}
	if h.refusal == nil && len(h.messages) == before {
		return invalid("input", "contains no text or message; send at least one")
	}
	var e *apiError
	a.Messages, e = h.end("input")
	return e
}

// earlier reads the turns that the request continues.
func (a *asking) earlier(read func(item json.RawMessage, at string) *apiError) *apiError {
	const field = "previous_response_id"
	id := stringOf(a.body.PreviousResponseID)
	if id == "" {
		return nil
	}
	if a.before = a.answers.hold(a.salt, id); a.before == nil {
		e := noResponse(http.StatusBadRequest, id)
		e.Param, e.Code = new(string), new(string)
		*e.Param, *e.Code = field, "previous_response_not_found"
		return e
	}
	bytes := int64(0)
	for t := a.before; t != nil && bytes <= a.most; t = t.before {
		bytes += t.bytes
	}
	if bytes > a.most {
		return invalid(field, "continues more than the %d bytes accepted; start a new conversation with the "+
			"relevant messages as input", a.most)
	}
	for _, t := range a.before.chain() {
		for _, item := range slices.Concat(t.input, t.output) {
			if e := read(item, field); e != nil {
				return e
			}
		}
	}
	a.kept = nil // stored with their own turns
	return nil
}

// item adds an item of the input to the history.
func (a *asking) item(raw json.RawMessage, at string) *apiError {
	h := &a.history
	if _, text := stringIn(raw); text {
		raw = append(append([]byte(`{"role":"user","content":`), raw...), '}')
	}
	var head struct {
		Type string  `json:"type"`
		ID   string  `json:"id"`
		Role *string `json:"role"`
	}
	if !h.object(raw, &head, at) {
		return nil
	}
	if head.Type == "item_reference" || head.Type == "" && head.Role == nil && head.ID != "" {
		stored := a.answers.item(a.salt, head.ID)
		if stored == nil {
			h.warn.Add("%s.id: no stored answer contains the item %q, which was left out", at, clip(head.ID))
			return nil
		}
		raw, head.Type, head.Role = stored, "", nil
		h.fields(raw, &head, at)
	}
	a.kept = append(a.kept, raw)
	switch head.Type {
	case "", "message":
		if head.Type == "" && head.Role == nil {
			h.leave(at, "an item without a kind and a role")
			return nil
		}
		return a.messageItem(raw, h.turnRole(head.Role, at), at)
	case "function_call", "custom_tool_call":
		a.callItem(raw, at)
	case "function_call_output", "custom_tool_call_output":
		return a.outputItem(raw, at)
	case "reasoning":
		return a.reasoningItem(raw, at)
	default:
		h.leave(at, fmt.Sprintf("an item of the kind %q", clip(head.Type)))
	}
	return nil
}

// messageItem adds a message.
func (a *asking) messageItem(raw json.RawMessage, role, at string) *apiError {
	var item struct {
		Content json.RawMessage `json:"content"`
	}
	a.history.fields(raw, &item, at)
	c, e := readContent(item.Content, at+".content")
	if role != "assistant" {
		a.history.say(role, &c)
		return e
	}
	a.history.answer(api.Message{Reasoning: a.reasoning}, &c)
	a.reasoning = ""
	return e
}

// callItem adds a call to the preceding assistant message, or to a new one.
func (a *asking) callItem(raw json.RawMessage, at string) {
	var item struct {
		Type      string          `json:"type"`
		CallID    string          `json:"call_id"`
		Name      string          `json:"name"`
		Namespace string          `json:"namespace"`
		Arguments json.RawMessage `json:"arguments"`
		Input     string          `json:"input"`
	}
	h := &a.history
	h.fields(raw, &item, at)
	arguments := (&functionCall{Arguments: item.Arguments}).arguments()
	if item.Type == "custom_tool_call" {
		arguments = inputArguments(item.Input)
	}
	owner := len(h.messages)
	if owner > 0 && h.messages[owner-1].Role == "assistant" {
		owner--
	}
	calls := h.call(nil, owner, item.CallID, within(item.Namespace, item.Name), arguments, at+".arguments")
	if calls == nil {
		return
	}
	if owner == len(h.messages) {
		h.add(api.Message{Role: "assistant"})
	}
	m := &h.messages[owner]
	m.Reasoning += a.reasoning
	m.Calls = append(m.Calls, calls...)
	a.reasoning, h.refusal = "", nil
}

// outputItem adds the result of a call.
func (a *asking) outputItem(raw json.RawMessage, at string) *apiError {
	var item struct {
		CallID string          `json:"call_id"`
		Output json.RawMessage `json:"output"`
	}
	a.history.fields(raw, &item, at)
	var c content
	var e *apiError
	if !isNull(item.Output) { // a tool may return nothing
		c, e = readResult(item.Output, at+".output")
	}
	a.history.result(item.CallID, "", &c, at+".call_id")
	return e
}

// reasoningItem keeps reasoning for the next assistant message. The template decides whether the
// model sees it.
func (a *asking) reasoningItem(raw json.RawMessage, at string) *apiError {
	var item struct {
		Content json.RawMessage `json:"content"`
		Summary json.RawMessage `json:"summary"`
	}
	a.history.fields(raw, &item, at)
	list, field := item.Content, at+".content"
	if isEmpty(list) {
		list, field = item.Summary, at+".summary"
	}
	if isEmpty(list) {
		return nil // encrypted or empty
	}
	c, e := readContent(list, field)
	a.history.report(&c)
	a.reasoning += strings.Join(c.texts, "")
	return e
}
