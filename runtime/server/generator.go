package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"sandwich/runtime/api"
)

// Generator produces text for requests; the engine stands behind it.
type Generator interface {
	// Generate runs one request to its end. It calls emit once for each token,
	// in order, one call at a time, and returns after the last call. emit may
	// block for Options.WriteTimeout while a client does not read, so it must
	// not be called from the loop that serves other requests. Generate stops
	// soon after ctx ends or emit fails, during prefill too, and then returns an
	// error that wraps the cause.
	//
	// *QueueFullError, *TooLongError, *InvalidError, *UnavailableError and
	// ErrClosed have answers of their own; any other error is answered with status 500.
	Generate(ctx context.Context, r *Request, emit func(Delta) error) (*Final, error)

	// Models lists what is served; the first one answers every request. There
	// is at least one.
	Models() []ModelInfo

	// Metrics are added to those of the server at each scrape.
	Metrics() []Metric
}

// Request is one checked request.
type Request struct {
	Messages []Message // of a chat; nil for a completion
	Prompt   string    // of a completion, unless Tokens is given
	Tokens   []int32   // prompt as token ids; the Generator checks their range

	MaxTokens   int // tokens to generate at most; 0: what the context leaves
	Sampling    Sampling
	Stop        []string // none is empty; the answer ends before the first that appears
	IgnoreEOS   bool
	Logprobs    bool // Delta.Token is wanted
	TopLogprobs int  // 0 to MaxTopLogprobs alternatives beside it
	Class       api.Class
	Salt        [sha256.Size]byte // only requests of one salt may tell each other's prefixes by what is cached
}

// Chat tells a chat from a completion.
func (r *Request) Chat() bool { return r.Messages != nil }

// Message is one turn of a chat, for the model's template.
type Message struct {
	Role    string // system, user, assistant, tool
	Content string
	Name    string // optional
}

// Sampling says how a token is chosen. Every field is finite and inside its
// range; the zero value of a field other than Temperature, TopP and
// RepeatPenalty switches it off.
type Sampling struct {
	Temperature      float32 // 0 (greedy) to 2
	TopP             float32 // 0 to 1; 1 is off
	MinP             float32 // 0 to 1
	TopK             int
	RepeatPenalty    float32 // above 0, at most 10; 1 is off
	FrequencyPenalty float32 // -2 to 2
	PresencePenalty  float32 // -2 to 2
	Seed             uint64
	Seeded           bool // Seed was given; otherwise any will do
}

// Delta is one generated token as it becomes visible.
type Delta struct {
	Text  string        // whole runes; may be empty while a rune or a stop string is undecided
	Token *TokenLogprob // where Request.Logprobs
}

// TokenLogprob is a token with its natural log probability.
type TokenLogprob struct {
	Text    string // its bytes; not always valid UTF-8
	Logprob float32
	Top     []TokenLogprob // the likeliest tokens, descending; empty in the entries themselves
}

// Final is the end of a request.
type Final struct {
	FinishReason     string // "stop" or "length"
	PromptTokens     int
	CachedTokens     int // part of PromptTokens that was reused
	CompletionTokens int
	Queued           time.Duration // until its first forward began
}

// ModelInfo describes a model for /v1/models.
type ModelInfo struct {
	ID      string
	Created time.Time
	Context int // tokens
}

// QueueFullError refuses a request that may come again later.
type QueueFullError struct{ RetryAfter time.Duration }

func (e *QueueFullError) Error() string {
	return fmt.Sprintf("the queue is full; try again in %v", e.RetryAfter)
}

// TooLongError refuses a request that exceeds the context.
type TooLongError struct {
	PromptTokens, MaxTokens, Context int
	AtLeast                          bool // PromptTokens is a lower bound, at least Context
}

func (e *TooLongError) Error() string {
	if e.PromptTokens >= e.Context {
		atLeast := ""
		if e.AtLeast {
			atLeast = "at least "
		}
		const text = "the prompt has %s%d tokens and the context holds %d, the answer included; shorten the prompt"
		return fmt.Sprintf(text, atLeast, e.PromptTokens, e.Context)
	}
	return fmt.Sprintf("the prompt has %d tokens and max_tokens asks for %d more, %d together, but the context holds %d; shorten the prompt or lower max_tokens",
		e.PromptTokens, e.MaxTokens, e.PromptTokens+e.MaxTokens, e.Context)
}

// InvalidError refuses the value of a parameter.
type InvalidError struct{ Param, Message string }

func (e *InvalidError) Error() string {
	if e.Param == "" {
		return e.Message
	}
	return e.Param + " " + e.Message
}

// UnavailableError refuses every request until the machine is as it was.
type UnavailableError struct{ Reason string }

func (e *UnavailableError) Error() string { return e.Reason }

// readier is a Generator that can say why it takes no requests at present.
type readier interface{ Ready() error }

// ErrClosed says that the server or the Generator is going down.
var ErrClosed = errors.New("the server is shutting down")
