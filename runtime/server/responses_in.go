package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"sandwich/runtime/api"
)

// responsesBody is the body of /v1/responses. What else its clients send is taken and changes
// nothing.
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
	TopLogprobs      *int64          `json:"top_logprobs"`
	Truncation       json.RawMessage `json:"truncation"`
	ClientMetadata   json.RawMessage `json:"client_metadata"`
	StreamOptions    json.RawMessage `json:"stream_options"`
	SafetyIdentifier json.RawMessage `json:"safety_identifier"`
}

var responsesFields = jsonNames[responsesBody]()

// asking is a request of /v1/responses while it is read and answered.
type asking struct {
	*call
	body      responsesBody
	answers   *store
	most      int64             // bytes of what it may go on from
	salt      [32]byte          // of its key
	before    *turn             // that it goes on from, which it holds
	kept      []json.RawMessage // items of its own, for the turn that it becomes
	store     bool
	reasoning string            // that the next item of the assistant comes with
	spaced    map[string]spaced // tools of namespaces, by what the model calls them
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
		return nil, invalid("conversation", "is not supported; go on with previous_response_id")
	case !isEmpty(b.Prompt):
		return nil, invalid("prompt", "is not supported, for no templates are kept here; send instructions and input")
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

// end lets go of the answer that the request went on from.
func (a *asking) end() { a.answers.release(a.before) }

// messages reads instructions, what was said before, and input. Instructions are those of this
// request alone.
func (a *asking) messages() *apiError {
	b := &a.body
	if b.Instructions != nil && *b.Instructions != "" {
		a.Messages = append(a.Messages, api.Message{Role: "system", Content: *b.Instructions})
	}
	var from []string // what each message was made of
	read := func(item json.RawMessage, at string) *apiError {
		e := a.item(item, at)
		for len(from) < len(a.Messages) {
			from = append(from, at)
		}
		if len(a.Messages) > MaxMessages {
			return invalid(at, "makes more than the %d messages accepted; begin anew, with what matters of them "+
				"as input",
				MaxMessages)
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
		item := append([]byte(`{"type":"message","role":"user","content":`), b.Input...)
		if e := read(append(item, '}'), "input"); e != nil {
			return e
		}
	default:
		if e := each(b.Input, "input", MaxMessages, func(i int, item json.RawMessage) *apiError {
			return read(item, fmt.Sprintf("input[%d]", i))
		}); e != nil {
			return e
		}
	}
	if len(from) == 0 {
		return invalid("input", "holds nothing that the model sees; send text or at least one message")
	}
	return checkResults(a.Messages, func(i int) string { return from[i] + ".call_id" })
}

// earlier reads the turns that the request goes on from.
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
		return invalid(field, "goes on from more than the %d bytes accepted; begin anew, with what matters of them as "+
			"input", a.most)
	}
	for _, t := range a.before.chain() {
		for _, item := range slices.Concat(t.input, t.output) {
			if e := read(item, field); e != nil {
				return e
			}
		}
	}
	a.kept = nil // they are in their own turns
	return nil
}

// responseItem is an item of the input, of any kind that agents send.
type responseItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Status    string          `json:"status"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Summary   json.RawMessage `json:"summary"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Namespace string          `json:"namespace"`
	Arguments string          `json:"arguments"`
	Input     string          `json:"input"`
	Output    json.RawMessage `json:"output"`
}

// item adds an item of the input to the messages.
func (a *asking) item(raw json.RawMessage, at string) *apiError {
	var item responseItem
	if e := decode(raw, &item, at); e != nil {
		return e
	}
	if item.Type == "item_reference" || item.Type == "" && item.Role == "" && item.ID != "" {
		if raw = a.answers.item(a.salt, item.ID); raw == nil {
			return invalid(at+".id", "is %q, and no stored answer has that item; send the item itself", clip(item.ID))
		}
		item = responseItem{}
		_ = json.Unmarshal(raw, &item) // an answer of ours
	}
	a.kept = append(a.kept, raw)
	m := api.Message{}
	var e *apiError
	switch item.Type {
	case "", "message":
		known := false
		if m.Role, known = roles[item.Role]; !known || m.Role == "tool" {
			return invalid(at+".role", "is %q and must be system, developer, user or assistant", clip(item.Role))
		}
		m.Content, e = parseContent(item.Content, at+".content", m.Role)
		if m.Role == "assistant" {
			m.Reasoning, a.reasoning = a.reasoning, ""
		}
	case "function_call", "custom_tool_call":
		return a.callItem(&item, at)
	case "function_call_output", "custom_tool_call_output":
		m.Role, m.CallID = "tool", item.CallID
		m.Content, e = parseContent(item.Output, at+".output", m.Role)
	case "reasoning":
		return a.reasoningItem(&item, at)
	default:
		if !ofHosted(item.Type) {
			return invalid(at+".type", "is %q; there are message, reasoning, function_call, custom_tool_call, their "+
				"outputs and item_reference", clip(item.Type))
		}
		a.warn("%s, %q, is of a tool that is not run here and was left out", at, clip(item.Type))
		return nil
	}
	a.Messages = append(a.Messages, m)
	return e
}

// ofHosted tells the items of tools that OpenAI runs, or whose form it fixes.
func ofHosted(kind string) bool {
	return strings.HasSuffix(kind, "_call") || strings.HasSuffix(kind, "_call_output") ||
		strings.HasPrefix(kind, "mcp_") || strings.HasPrefix(kind, "compaction")
}

// callItem adds a call to the message of the assistant that it stands behind, or to one of its own.
// A stored call that was cut is left out, as nobody has its result.
func (a *asking) callItem(item *responseItem, at string) *apiError {
	if item.Status == "incomplete" && !json.Valid([]byte(item.Arguments)) {
		a.warn("%s, the call %q, was cut and is left out", at, clip(item.CallID))
		return nil
	}
	if item.Name == "" {
		return invalid(at+".name", "is missing")
	}
	if item.Type == "custom_tool_call" {
		item.Arguments = string(append(appendString([]byte(`{"input":`), item.Input), '}'))
	}
	call, e := checkCall(item.CallID, within(item.Namespace, item.Name), item.Arguments, at+".arguments")
	last := len(a.Messages) - 1
	if last < 0 || a.Messages[last].Role != "assistant" {
		a.Messages = append(a.Messages, api.Message{Role: "assistant"})
		last++
	}
	m := &a.Messages[last]
	m.Reasoning += a.reasoning
	a.reasoning = ""
	m.Calls = append(m.Calls, call)
	return e
}

// reasoningItem keeps what an answer was reasoned with; templates say whether a model sees it
// again.
func (a *asking) reasoningItem(item *responseItem, at string) *apiError {
	list, field := item.Content, ".content"
	if isEmpty(list) {
		list, field = item.Summary, ".summary"
	}
	if isEmpty(list) {
		return nil // encrypted, or without text
	}
	return each(list, at+field, MaxParts, func(_ int, part json.RawMessage) *apiError {
		var p struct {
			Text string `json:"text"`
		}
		e := decode(part, &p, at+field)
		a.reasoning += p.Text
		return e
	})
}

// responses is the handler of /v1/responses.
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
