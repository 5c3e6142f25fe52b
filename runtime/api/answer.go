package api

import (
	"errors"
	"time"
)

// Token is one generated token, sent as soon as its text is known.
type Token struct {
	TokenLogprob                // of the sampled token; without Request.Logprobs only ID is set
	Text         string         // text that the token completes: whole runes without stop strings; may be empty
	Reasoning    string         // reasoning that the token completes, separate from the text
	Calls        []CallDelta    // additions to tool calls
	Top          []TokenLogprob // the Request.TopLogprobs most likely tokens, in descending order
	Prompt       bool           // a prompt token, without Text; the log probability of the first one is NaN
	End          bool           // an end-of-generation token that ended the answer; it has no Text
}

// ErrStop is an error that an emit function returns to end an answer early, with the reason
// FinishStop and without an error.
var ErrStop = errors.New("the answer ends here")

// NoToken is the ID of a Token that carries only text held back after the last token.
const NoToken = -1

// TokenLogprob is a token with the natural logarithm of its probability before top-k, top-p and
// min-p apply.
type TokenLogprob struct {
	ID      int32
	Piece   string // bytes of the token; may be invalid UTF-8 and may differ from the text that it adds
	Logprob float32
}

// Finish is the reason why an answer ended.
type Finish string

const (
	FinishStop   Finish = "stop"       // end-of-generation token or stop string
	FinishLength Finish = "length"     // MaxTokens or the end of the context was reached
	FinishCalls  Finish = "tool_calls" // the answer calls tools
)

// Result describes a finished answer.
type Result struct {
	Finish       Finish
	StopString   string // the stop string that ended the answer; empty if none did
	PromptTokens int
	CachedTokens int // prompt tokens taken from the prefix cache
	Tokens       int // generated tokens

	DraftedTokens  int           // tokens that were drafted and verified
	AcceptedTokens int           // of them, tokens that are part of the answer
	Arrived        time.Time     // when the engine accepted the request
	Started        bool          // its first forward has started
	Queued         time.Duration // from arrival to the start of the first forward
	FirstToken     time.Duration // from arrival to the first token
	Total          time.Duration // from arrival to the last token

	LoadedTokens int           // prompt tokens loaded from disk
	LoadBegan    time.Time     // start of their load
	LoadTime     time.Duration // of the load
}
