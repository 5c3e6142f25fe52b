package api

import "time"

// Token is one generated token as it becomes visible.
type Token struct {
	TokenLogprob                // of the token drawn; all but its ID only where Request.Logprobs
	Text         string         // that it completed: whole runes, nothing of a stop string; may be empty
	Reasoning    string         // that it completed, apart from the text of the answer
	Calls        []CallDelta    // what it adds to calls of tools
	Top          []TokenLogprob // the likeliest tokens, descending; Request.TopLogprobs of them
	Prompt       bool           // it is one of the prompt, with no Text; the log probability of the first is NaN
}

// NoToken is the ID of a Token that only carries the text that was held back behind the last one.
const NoToken = -1

// TokenLogprob is a token and the natural logarithm of its probability before sampling limits.
type TokenLogprob struct {
	ID      int32
	Piece   string // its bytes; not always valid UTF-8, and not always what it adds to the text
	Logprob float32
}

// Finish is why an answer ended.
type Finish string

const (
	FinishStop   Finish = "stop"   // at an end-of-generation token or a stop string
	FinishLength Finish = "length" // at MaxTokens or the end of the context
	FinishCalls  Finish = "tool_calls"
)

// Result sums an answer up.
type Result struct {
	Finish       Finish
	StopString   string // that ended it; empty: none did
	PromptTokens int
	CachedTokens int           // of the prompt, whose keys and values were already there
	Tokens       int           // generated
	Arrived      time.Time     // it was taken in, the earlier of two before the other
	Queued       time.Duration // until its first forward began
	FirstToken   time.Duration // from submission
	Total        time.Duration // from submission to the last token
}
