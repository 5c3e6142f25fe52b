package server

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strconv"

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

// common are the fields that /v1/chat/completions and /v1/completions share.
type common struct {
	told
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
	Tools               json.RawMessage   `json:"tools"`
	Functions           json.RawMessage   `json:"functions"`
	ToolChoice          json.RawMessage   `json:"tool_choice"`
	ResponseFormat      json.RawMessage   `json:"response_format"`
	JSONSchema          json.RawMessage   `json:"json_schema"`
	Grammar             *string           `json:"grammar"`
	GuidedJSON          json.RawMessage   `json:"guided_json"`
	GuidedGrammar       *string           `json:"guided_grammar"`
	GuidedChoice        []string          `json:"guided_choice"`
	Modalities          []string          `json:"modalities"`
	Echo                *bool             `json:"echo"`
	BestOf              *jsontext.Integer `json:"best_of"`
	Suffix              *string           `json:"suffix"`
}

// chatBody is the body of /v1/chat/completions.
type chatBody struct {
	common
	Messages            json.RawMessage   `json:"messages"`
	ParallelToolCalls   *bool             `json:"parallel_tool_calls"`
	Continue            *bool             `json:"continue_final_message"`
	AddGenerationPrompt *bool             `json:"add_generation_prompt"`
	Logprobs            *bool             `json:"logprobs"`
	TopLogprobs         *jsontext.Integer `json:"top_logprobs"`
}

// completionBody is the body of /v1/completions.
type completionBody struct {
	common
	Prompt   json.RawMessage   `json:"prompt"`
	Logprobs *jsontext.Integer `json:"logprobs"`
}

var (
	chatFields       = fields.Names[chatBody]()
	completionFields = fields.Names[completionBody]()
)

// call is a checked request with the options of its answer.
type call struct {
	api.Request
	stream bool
	usage  bool // send the usage in a last chunk

	progress bool // report the progress of the prompt as often as possible

	n       int        // answers per prompt
	prompts []prompted // several prompts; nil: the prompt of Request
	echo    []echoed   // by prompt, if prompts are echoed; filled when known

	stated    bool     // the client states Class
	placed    bool     // the client states Priority
	seeded    bool     // the client sets Sampling.Seed
	cacheSalt string   // separates prefix caches further than API keys do
	unknown   []string // ignored fields

	custom map[string]bool // tools that accept plain text (/v1/responses)
}

// newCall returns a call that collects warnings.
func newCall() *call { return &call{Request: api.Request{Warnings: new(api.Warnings)}} }

const maxInt32 = math.MaxInt32

// parseChat checks the body of /v1/chat/completions.
func parseChat(data []byte) (*call, *apierr.Error) {
	var b chatBody
	c, e := parseCommon(data, &b, &b.common, chatFields())
	if e != nil {
		return nil, e
	}
	if c.TopLogprobs, e = fields.Integer(b.TopLogprobs, "top_logprobs", 0, MaxTopLogprobs, 0); e != nil {
		return nil, e
	}
	if b.echoes() {
		return nil, apierr.Invalid("echo", "is supported by /v1/completions only; leave it out")
	}
	c.Logprobs = b.Logprobs != nil && *b.Logprobs
	if c.TopLogprobs > 0 && !c.Logprobs {
		return nil, apierr.Invalid("top_logprobs", "requires logprobs to be true")
	}
	if c.Messages, e = parseMessages(b.Messages, c.Warnings); e != nil {
		return nil, e
	}
	if e = b.tools(&c.Request); e != nil {
		return nil, e
	}
	if b.Continue != nil && *b.Continue || b.AddGenerationPrompt != nil && !*b.AddGenerationPrompt {
		c.Continue = true
		if last := c.Messages[len(c.Messages)-1]; last.Role != "assistant" || last.Content == "" || last.Calls != nil {
			return nil, apierr.Invalid("continue_final_message",
				"requires a last message of the assistant with text to continue")
		}
	}
	return c, nil
}

// parseCompletion checks the body of /v1/completions.
func parseCompletion(data []byte) (*call, *apierr.Error) {
	var b completionBody
	c, e := parseCommon(data, &b, &b.common, completionFields())
	if e != nil {
		return nil, e
	}
	if c.MaxTokens == 0 && b.NPredict == nil && b.MaxTokens == nil {
		c.MaxTokens = 16 // the endpoint's default
	}
	c.Logprobs = b.Logprobs != nil
	if c.TopLogprobs, e = fields.Integer(b.Logprobs, "logprobs", 0, MaxTopLogprobs, 0); e != nil {
		return nil, e
	}
	if e := parsePrompt(b.Prompt, c); e != nil {
		return nil, e
	}
	if c.choices() > maxChoices {
		return nil, apierr.Invalid("prompt", "and n ask for %d answers; at most %d are allowed", c.choices(),
			maxChoices)
	}
	if b.echoes() {
		c.echo = make([]echoed, max(1, len(c.prompts)))
		c.OfPrompt = c.Logprobs
		c.PromptOnly = b.MaxTokens != nil && *b.MaxTokens == 0
	}
	return c, nil
}

// echoes reports whether the client asks to echo the prompt.
func (b *common) echoes() bool { return b.Echo != nil && *b.Echo }

// parseCommon decodes a body into v, which contains b, and checks the fields of b and the names of
// all fields.
func parseCommon(data []byte, v any, b *common, known map[string]bool) (*call, *apierr.Error) {
	if e := fields.Decode(data, v, ""); e != nil {
		return nil, e
	}
	unknown, e := fields.Check(data, known)
	if e != nil {
		return nil, e
	}
	if e := b.offered(); e != nil {
		return nil, e
	}
	c, e := b.check()
	if e != nil {
		return nil, e
	}
	c.unknown = unknown
	return c, nil
}

// offered returns an error for fields whose feature is not supported.
func (b *common) offered() *apierr.Error {
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

// check checks the values of the fields and returns the call.
func (b *common) check() (*call, *apierr.Error) {
	c := newCall()
	c.stream = b.Stream != nil && *b.Stream
	if o := b.StreamOptions; o != nil {
		if !c.stream {
			return nil, apierr.Invalid("stream_options", "is only allowed if stream is true")
		}
		c.usage = o.IncludeUsage != nil && *o.IncludeUsage
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
	if c.n, e = fields.Integer(b.N, "n", 1, maxChoices, 1); e != nil {
		return nil, e
	}
	if e = b.tell(&c.Request, "reasoning_effort"); e != nil {
		return nil, e
	}
	c.seeded = b.Seed != nil
	if c.Stop, e = parseStop(b.Stop, "stop"); e != nil {
		return nil, e
	}
	if c.Format, e = b.format(); e != nil {
		return nil, e
	}
	c.IgnoreEOS = b.IgnoreEOS != nil && *b.IgnoreEOS
	c.progress = b.ReturnProgress != nil && *b.ReturnProgress
	if e := b.class(c); e != nil {
		return nil, e
	}
	if b.CacheSalt != nil {
		c.cacheSalt = *b.CacheSalt
	}
	return c, nil
}

// limit returns the maximum number of tokens, under the newest of its names that is set; 0 means no
// limit but the context. llama-server's clients write -1 for that.
func (b *common) limit() (int, *apierr.Error) {
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
		if f.v != nil && *f.v == 0 && b.echoes() {
			continue // only the prompt is wanted
		}
		n, e := fields.Integer(f.v, f.name, 1, maxInt32, int64(limit))
		if e != nil {
			return 0, e
		}
		limit = n
	}
	return limit, nil
}

// sampling returns the sampling parameters.
func (b *common) sampling() (s api.Sampling, e *apierr.Error) {
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
	if s.TopK, e = fields.Integer(b.TopK, "top_k", -1, maxInt32, 0); e != nil {
		return s, e
	}
	s.TopK = max(s.TopK, 0)
	s.Seed = rand.Uint64()
	if b.Seed != nil {
		s.Seed = uint64(*b.Seed)
	}
	return s, nil
}

// parseBias reads {"ID": bias} or llama-server's [[ID, bias], ...], in which false bans a token.
func parseBias(raw json.RawMessage) (map[int32]float32, *apierr.Error) {
	const field = "logit_bias"
	if jsontext.IsEmpty(raw) {
		return nil, nil
	}
	bias := map[int32]float32{}
	put := func(id, value string) *apierr.Error {
		if value == "false" {
			value = "-100"
		}
		n, err := strconv.ParseInt(id, 10, 32)
		v, wrong := strconv.ParseFloat(value, 64)
		switch {
		case err != nil || n < 0:
			return apierr.Invalid(field, "contains %q, which is not a token id", jsontext.Clip(id))
		case wrong != nil || !(v >= -100 && v <= 100):
			return apierr.Invalid(field, "gives token %d the bias %s; use a number from -100 to 100", n,
				jsontext.Clip(value))
		case len(bias) == maxBias:
			return apierr.Invalid(field, "has more than the %d tokens accepted", maxBias)
		}
		bias[int32(n)] = float32(v)
		return nil
	}
	if raw[0] == '[' {
		return bias, fields.Each(raw, field, maxBias, func(_ int, item json.RawMessage) *apierr.Error {
			var pair []json.RawMessage
			if json.Unmarshal(item, &pair) != nil || len(pair) != 2 {
				return apierr.Invalid(field, "must be an object from token ids to biases or a list of pairs of id "+
					"and bias")
			}
			id := string(pair[0])
			if n, whole := jsontext.ParseInteger(id); whole {
				id = strconv.FormatInt(n, 10)
			}
			return put(id, string(pair[1]))
		})
	}
	if raw[0] != '{' {
		return nil, apierr.Invalid(field, "must be an object from token ids to biases or a list of pairs of id and "+
			"bias")
	}
	for id, value := range jsontext.Members(raw) {
		if e := put(id, string(value)); e != nil {
			return nil, e
		}
	}
	return bias, nil
}

// maxBias bounds the biased tokens of a request, each of which costs time per generated token.
const maxBias = 1024

// parseStop reads a string or a list of strings.
func parseStop(raw json.RawMessage, name string) ([]string, *apierr.Error) {
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
