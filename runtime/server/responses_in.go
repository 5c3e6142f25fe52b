package server

import (
	"encoding/json"
	"net/http"
	"slices"
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
	reasoning string // that the next item of the assistant comes with
	history   history
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
