// Package request checks the fields that the APIs share and defines Call, the checked request of
// all APIs.
package request

import (
	"encoding/json"
	"math"
	"math/rand/v2"

	"sandwich/runtime/api"
	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/fields"
	"sandwich/runtime/server/jsontext"
)

// Limits of one request. They bound the work per token; for example, every stop string is compared
// at every token.
const (
	MaxStops       = 64   // stop strings
	MaxStopBytes   = 1024 // bytes of each stop string
	MaxTopLogprobs = 20   // alternatives per token
	MaxMessages    = 8192 // messages of a chat
)

// Common has the fields of /v1/chat/completions and /v1/completions. The other APIs fill in those
// that they share, to have them checked in the same way.
type Common struct {
	TemplateOptions
	Model         *string `json:"model"`
	Stream        *bool   `json:"stream"`
	StreamOptions *struct {
		IncludeUsage *bool `json:"include_usage"`
	} `json:"stream_options"`
	MaxTokens           *jsontext.Integer `json:"max_tokens"`
	MaxCompletionTokens *jsontext.Integer `json:"max_completion_tokens"`
	NPredict            *jsontext.Integer `json:"n_predict"`
	Temperature         *float64          `json:"temperature"`
	TopP                *float64          `json:"top_p"`
	MinP                *float64          `json:"min_p"`
	TopK                *jsontext.Integer `json:"top_k"`
	RepetitionPenalty   *float64          `json:"repetition_penalty"`
	RepeatPenalty       *float64          `json:"repeat_penalty"`
	FrequencyPenalty    *float64          `json:"frequency_penalty"`
	PresencePenalty     *float64          `json:"presence_penalty"`
	Seed                *jsontext.Integer `json:"seed"`
	Stop                json.RawMessage   `json:"stop"`
	N                   *jsontext.Integer `json:"n"`
	LogitBias           json.RawMessage   `json:"logit_bias"`
	IgnoreEOS           *bool             `json:"ignore_eos"`
	ReturnProgress      *bool             `json:"return_progress"`
	ServiceTier         *string           `json:"service_tier"`
	Priority            json.RawMessage   `json:"priority"`
	User                *string           `json:"user"`
	CacheSalt           *string           `json:"cache_salt"`
	PromptCacheKey      json.RawMessage   `json:"prompt_cache_key"`
	Tools               json.RawMessage   `json:"tools"`
	Functions           json.RawMessage   `json:"functions"`
	ToolChoice          json.RawMessage   `json:"tool_choice"`
	ResponseFormat      json.RawMessage   `json:"response_format"`
	JSONSchema          json.RawMessage   `json:"json_schema"`
	Grammar             *string           `json:"grammar"`
	GuidedJSON          json.RawMessage   `json:"guided_json"`
	GuidedGrammar       *string           `json:"guided_grammar"`
	GuidedChoice        []string          `json:"guided_choice"`
	Structured          structuredOutputs `json:"structured_outputs"`
	Modalities          []string          `json:"modalities"`
	Echo                *bool             `json:"echo"`
	BestOf              *jsontext.Integer `json:"best_of"`
	Suffix              *string           `json:"suffix"`
}

// Call is a checked request with the options of its answer.
type Call struct {
	api.Request
	Model  string // that the client names; "": none
	Stream bool
	Usage  bool // send the usage in a last chunk

	ReportProgress bool // report the progress of the prompt as often as possible

	N       int      // answers per prompt
	Prompts []Prompt // several prompts; nil: the prompt of Request
	Echo    []Echo   // by prompt, if prompts are echoed; filled when known

	stated      bool     // the client states Class
	prioritySet bool     // the client states Priority
	Seeded      bool     // the client sets Sampling.Seed
	CacheSalt   string   // separates prefix caches further than API keys do
	Unknown     []string // ignored fields

	Custom map[string]bool // tools that accept plain text (/v1/responses)
}

// MarkPreamble marks the ends of the first system messages and of the tools for the prefix store
// (api.Message.Mark).
func (c *Call) MarkPreamble() {
	c.ToolsMarked = c.ToolsMarked || len(c.Tools) > 0
	n := 0
	for n < len(c.Messages) && c.Messages[n].Role == "system" {
		n++
	}
	if n > 0 {
		c.Messages[n-1].Mark = api.MarkEnd
	}
}

// New returns a call that collects warnings.
func New() *Call { return &Call{Request: api.Request{Warnings: new(api.Warnings)}} }

// MaxInt32 is the largest value of integer fields without a limit of their own.
const MaxInt32 = math.MaxInt32

// Echoes reports whether the client asks to echo the prompt.
func (b *Common) Echoes() bool { return b.Echo != nil && *b.Echo }

// Parse decodes a body into v, which contains b, and checks the fields of b and the names of
// all fields.
func Parse(data []byte, v any, b *Common, known map[string]bool) (*Call, *apierr.Error) {
	if e := fields.Decode(data, v, ""); e != nil {
		return nil, e
	}
	unknown, e := fields.Check(data, known)
	if e != nil {
		return nil, e
	}
	if e := b.checkSupported(); e != nil {
		return nil, e
	}
	c, e := b.Check()
	if e != nil {
		return nil, e
	}
	c.Unknown = unknown
	return c, nil
}

// checkSupported returns an error for fields whose feature is not supported.
func (b *Common) checkSupported() *apierr.Error {
	switch {
	case !jsontext.IsEmpty(b.Functions):
		return apierr.Invalid("functions", "are not supported; send them as tools")
	case b.BestOf != nil && *b.BestOf != 1 && (b.N == nil || *b.BestOf != *b.N):
		return apierr.Invalid("best_of", "is %d, but answers are not ranked; leave it out", *b.BestOf)
	case b.Suffix != nil && *b.Suffix != "":
		return apierr.Invalid("suffix", "is not supported; leave it out")
	}
	for _, m := range b.Modalities {
		if m != "text" {
			return apierr.Invalid("modalities", "%q is not supported; the answer is text", jsontext.Clip(m))
		}
	}
	return nil
}

// Check checks the values of the fields and returns the call.
func (b *Common) Check() (*Call, *apierr.Error) {
	c := New()
	c.Stream = b.Stream != nil && *b.Stream
	if o := b.StreamOptions; o != nil {
		if !c.Stream {
			return nil, apierr.Invalid("stream_options", "is only allowed if stream is true")
		}
		c.Usage = o.IncludeUsage != nil && *o.IncludeUsage
	}
	var e *apierr.Error
	if c.MaxTokens, e = b.limit(); e != nil {
		return nil, e
	}
	if c.Sampling, e = b.sampling(); e != nil {
		return nil, e
	}
	if c.Sampling.Bias, e = parseBias(b.LogitBias); e != nil {
		return nil, e
	}
	if c.N, e = fields.Integer(b.N, "n", 1, MaxChoices, 1); e != nil {
		return nil, e
	}
	if e = b.Apply(&c.Request, "reasoning_effort"); e != nil {
		return nil, e
	}
	c.Seeded = b.Seed != nil
	if c.Stop, e = ParseStop(b.Stop, "stop"); e != nil {
		return nil, e
	}
	if c.Format, e = b.format(); e != nil {
		return nil, e
	}
	c.IgnoreEOS = b.IgnoreEOS != nil && *b.IgnoreEOS
	c.ReportProgress = b.ReturnProgress != nil && *b.ReturnProgress
	if e := b.ReadClass(c); e != nil {
		return nil, e
	}
	if b.CacheSalt != nil {
		c.CacheSalt = *b.CacheSalt
	}
	return c, nil
}

// limit returns the maximum number of tokens, under the newest of its names that is set; 0 means no
// limit but the context. llama-server's clients write -1 for that.
func (b *Common) limit() (int, *apierr.Error) {
	limit := 0
	for _, f := range []struct {
		v    *jsontext.Integer
		name string
	}{
		{b.NPredict, "n_predict"}, {b.MaxTokens, "max_tokens"}, {b.MaxCompletionTokens, "max_completion_tokens"},
	} {
		if f.v != nil && *f.v == -1 {
			continue // llama-server: up to the end of the context
		}
		if f.v != nil && *f.v == 0 && b.Echoes() {
			continue // only the prompt is wanted
		}
		n, e := fields.Integer(f.v, f.name, 1, MaxInt32, int64(limit))
		if e != nil {
			return 0, e
		}
		limit = n
	}
	return limit, nil
}

// sampling returns the sampling parameters.
func (b *Common) sampling() (s api.Sampling, e *apierr.Error) {
	penalty, name := b.RepetitionPenalty, "repetition_penalty"
	if penalty == nil {
		penalty, name = b.RepeatPenalty, "repeat_penalty"
	}
	for _, f := range []struct {
		to          *float32
		v           *float64
		name        string
		lo, hi, def float64
	}{
		{&s.Temperature, b.Temperature, "temperature", 0, 2, 1},
		{&s.TopP, b.TopP, "top_p", 0, 1, 1},
		{&s.MinP, b.MinP, "min_p", 0, 1, 0},
		{&s.RepeatPenalty, penalty, name, 0.01, 10, 1},
		{&s.FrequencyPenalty, b.FrequencyPenalty, "frequency_penalty", -2, 2, 0},
		{&s.PresencePenalty, b.PresencePenalty, "presence_penalty", -2, 2, 0},
	} {
		if *f.to, e = fields.Number(f.v, f.name, f.lo, f.hi, f.def); e != nil {
			return s, e
		}
	}
	// -1 disables top-k for some clients; no vocabulary exceeds the upper bound.
	if s.TopK, e = fields.Integer(b.TopK, "top_k", -1, MaxInt32, 0); e != nil {
		return s, e
	}
	s.TopK = max(s.TopK, 0)
	s.Seed = rand.Uint64()
	if b.Seed != nil {
		s.Seed = uint64(*b.Seed)
	}
	return s, nil
}

// ParseStop reads a string or a list of strings.
func ParseStop(raw json.RawMessage, name string) ([]string, *apierr.Error) {
	if jsontext.IsNull(raw) {
		return nil, nil
	}
	if raw[0] == '"' {
		raw = json.RawMessage("[" + string(raw) + "]")
	}
	if raw[0] != '[' {
		return nil, apierr.Invalid(name, "must be a string or a list of strings")
	}
	var stops []string
	e := fields.Each(raw, name, MaxStops, func(i int, item json.RawMessage) *apierr.Error {
		var s string
		switch {
		case json.Unmarshal(item, &s) != nil || jsontext.IsNull(item):
			return apierr.Invalid(name, "must be a string or a list of strings")
		case s == "":
			return apierr.Invalid(name, "must not contain an empty string")
		case len(s) > MaxStopBytes:
			return apierr.Invalid(name, "contains a string of %d bytes; at most %d are accepted", len(s), MaxStopBytes)
		}
		stops = append(stops, s)
		return nil
	})
	return stops, e
}

// MaxChoices bounds the choices of one request.
const MaxChoices = 128

// Prompt is one of several prompts: a text or token ids.
type Prompt struct {
	Text string
	IDs  []int32
}

// Echo is a prompt that is returned before its answers.
type Echo struct {
	Text   string
	Offset int // of the first token in bytes; negative if tokens represent more than the text
}

// Choices returns the number of answers that a call asks for.
func (c *Call) Choices() int { return c.N * max(1, len(c.Prompts)) }
