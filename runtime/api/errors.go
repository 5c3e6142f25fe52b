package api

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// ErrClosed says that whoever takes requests is going down.
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

func (e *TooLongError) Error() string {
	atLeast := ""
	if e.AtLeast {
		atLeast = "at least "
	}
	if e.Text {
		remedy := "shorten it, or have it truncated"
		if e.Param != "" {
			remedy = "shorten it"
		}
		const text = "%s has %s%d tokens and the context holds %d; %s"
		return fmt.Sprintf(text, cmp.Or(e.Of, "the text"), atLeast, e.PromptTokens, e.Context, remedy)
	}
	if e.PromptTokens >= e.Context {
		const text = "the prompt has %s%d tokens and the context holds %d, the answer included; shorten the prompt"
		return fmt.Sprintf(text, atLeast, e.PromptTokens, e.Context)
	}
	const text = "the prompt has %d tokens and max_tokens asks for %d more, %d together, " +
		"but the context holds %d; shorten the prompt or lower max_tokens"
	return fmt.Sprintf(text, e.PromptTokens, e.MaxTokens, e.PromptTokens+e.MaxTokens, e.Context)
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
