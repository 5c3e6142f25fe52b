package api

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// ErrClosed reports that the server is shutting down.
var ErrClosed = errors.New("the server is shutting down")

// QueueFullError refuses a request because the queue is full. The client may send it again after
// RetryAfter.
type QueueFullError struct{ RetryAfter time.Duration }

func (e *QueueFullError) Error() string {
	return fmt.Sprintf("the queue is full: try again in %v", e.RetryAfter)
}

// TooLongError refuses a request that exceeds the context. Counts are in tokens.
type TooLongError struct {
	PromptTokens, MaxTokens, Context int
	AtLeast                          bool   // PromptTokens is a lower bound, at least Context
	Text                             bool   // the request is an embedding or a score and generates nothing
	Of                               string // name of the text that is too long; empty if the request has only one
	Param                            string // field that cannot be truncated; empty if the text can
}

// Error returns a text that agents recognize, so that they shorten the conversation instead of
// sending it again. The wording for prompts and for max_tokens is that of Anthropic's API, the code
// in parentheses is OpenAI's.
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
	// An answer takes at least one token of the context.
	const text = "prompt is too long: %d tokens > %d maximum (context_length_exceeded); %s"
	return fmt.Sprintf(text, e.PromptTokens, min(e.Context, e.PromptTokens-1), remedy)
}

// ofText returns the message for an embedding or a score.
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

// InvalidError refuses a request because of its content.
type InvalidError struct {
	Param   string // field at fault; Error puts it before Message. Empty if Message names everything.
	Message string
	Model   bool // the requested model is at fault; Message names it
}

func (e *InvalidError) Error() string {
	if e.Param == "" {
		return e.Message
	}
	return e.Param + " " + e.Message
}

// UnavailableError refuses every request while the process may use none of the PUs of its plan.
type UnavailableError struct{ Reason string }

func (e *UnavailableError) Error() string { return e.Reason }

// LostDeviceError ends a request that had started when a device was lost whose results differ from
// those of the cores by rounding, so that the cores cannot continue it. A new request may succeed.
type LostDeviceError struct {
	Device string
	Err    error
}

func (e *LostDeviceError) Error() string {
	return fmt.Sprintf("device %s was lost, and the cores cannot continue a request with the rounding of the device: "+
		"send it again: %v", e.Device, e.Err)
}

func (e *LostDeviceError) Unwrap() error { return e.Err }
