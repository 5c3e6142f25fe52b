package engine

import (
	"errors"
	"fmt"
	"time"

	"sandwich/runtime/kvcache"
	"sandwich/runtime/sched"
)

// Request is one generation.
type Request struct {
	Prompt    []int32
	MaxTokens int // 0: up to the end of the context; more than the context leaves is cut to it, and the answer ends with reason length
	Sampling  Sampling
	Stop      []string
	IgnoreEOS bool
	Logprobs  bool
	Top       int // most likely alternatives to report beside each token, with Logprobs
	Class     sched.Class
	Salt      kvcache.Salt // whose prefixes it may share
}

// Token is one generated token and the text that it completed: whole runes only, and nothing of a stop string. After
// the last one, text that was held back comes with ID -1.
type Token struct {
	ID      int32
	Text    string
	Logprob float32
	Top     []TokenLogprob
}

// Result sums a generation up.
type Result struct {
	Finish       string // stop, length
	PromptTokens int
	CachedTokens int // of the prompt, whose keys and values were already there
	Tokens       int
	Queued       time.Duration // until its first forward began
	FirstToken   time.Duration // from submission
	Total        time.Duration // from submission to the last token
}

// ErrClosed is returned for requests that the engine can no longer finish.
var ErrClosed = errors.New("the engine is shutting down")

// ErrEmptyPrompt refuses a request without any token.
var ErrEmptyPrompt = errors.New("the prompt is empty: give at least one token")

// QueueFullError refuses a request because too many wait.
type QueueFullError struct{ RetryAfter time.Duration }

func (e *QueueFullError) Error() string {
	return fmt.Sprintf("the queue is full: try again in %s", e.RetryAfter)
}

// TooLongError refuses a prompt that leaves no room for an answer.
type TooLongError struct{ Prompt, MaxTokens, Context int }

func (e *TooLongError) Error() string {
	return fmt.Sprintf("the prompt has %d tokens but the context holds %d: shorten the prompt or serve with a larger --ctx", e.Prompt, e.Context)
}

// InvalidTokenError refuses a prompt with an id that the model has no token for.
type InvalidTokenError struct {
	Index int // in the prompt
	Token int32
	Vocab int // ids run from 0 to Vocab-1
}

func (e *InvalidTokenError) Error() string {
	return fmt.Sprintf("token %d of the prompt has id %d, outside the vocabulary of %d", e.Index, e.Token, e.Vocab)
}

// InternalError ends every request of an engine in which a forward or the loop panicked; the engine takes no more.
type InternalError struct {
	Value any    // what it panicked with
	Stack []byte // where; nil when unknown
}

func (e *InternalError) Error() string {
	return fmt.Sprintf("the engine stopped after an internal error, restart it: %v", e.Value)
}

// Unwrap returns the value if it is an error.
func (e *InternalError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
