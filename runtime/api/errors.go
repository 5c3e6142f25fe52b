package api

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// ErrClosed reports that the server is shutting down.
var ErrClosed = errors.New("the server is shutting down")

// QueueFullError refuses a request that may come again later.
type QueueFullError struct{ RetryAfter time.Duration }

func (e *QueueFullError) Error() string {
	return fmt.Sprintf("the queue is full: try again in %v", e.RetryAfter)
}

// TooLongError refuses a request that exceeds the context.
type TooLongError struct {
	PromptTokens, MaxTokens, Context int
	AtLeast                          bool   // PromptTokens is a lower bound, at least Context
	Text                             bool   // there is no answer: a text is read
	Of                               string // which text it is; empty: the one there is
	Param                            string // the field at fault, which nothing truncates; empty: that of the text
}

// Error returns a text that agents recognize, and then shorten the conversation instead of sending
// it again: for prompts and for max_tokens the words and figures are those of Anthropic's API, and
// the code is OpenAI's.
func (e *TooLongError) Error() string {
	switch {
	case e.Text:
		return e.ofText()
	case e.PromptTokens < e.Context:
		const text = "input length and max_tokens exceed context limit: %d + %d > %d; " +
			"shorten the prompt or lower max_tokens"
		return fmt.Sprintf(text, e.PromptTokens, e.MaxTokens, e.Context)
	}
	remedy := "shorten the prompt"
	if e.AtLeast {
		remedy = "the prompt has at least that many tokens; " + remedy
	}
	// An answer takes one token of the context at least.
	const text = "prompt is too long: %d tokens > %d maximum (context_length_exceeded); %s"
	return fmt.Sprintf(text, e.PromptTokens, min(e.Context, e.PromptTokens-1), remedy)
}

// ofText returns the text for an embedding or a score.
func (e *TooLongError) ofText() string {
	atLeast := ""
	if e.AtLeast {
		atLeast = "at least "
	}
	remedy := "shorten it, or have it truncated"
	if e.Param != "" {
		remedy = "shorten it"
	}
	const text = "%s has %s%d tokens and the context holds %d; %s"
	return fmt.Sprintf(text, cmp.Or(e.Of, "the text"), atLeast, e.PromptTokens, e.Context, remedy)
}

// InvalidError refuses a request for what it holds.
type InvalidError struct {
	Param   string // the field at fault, which Message goes on from; empty where Message says it all
	Message string
	Model   bool // the model that was asked is at fault, which Message names
}

func (e *InvalidError) Error() string {
	if e.Param == "" {
		return e.Message
	}
	return e.Param + " " + e.Message
}

// UnavailableError refuses every request until the machine is as it was.
type UnavailableError struct{ Reason string }

func (e *UnavailableError) Error() string { return e.Reason }
