// Package apierr defines the error responses of the HTTP API and their mapping to statuses.
package apierr

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"

	"sandwich/runtime/api"
	"sandwich/runtime/server/jsontext"
)

// Error is an error response in OpenAI's format.
type Error struct {
	Status     int     `json:"-"`
	Message    string  `json:"message"`
	Type       string  `json:"type"`
	Param      *string `json:"param"`
	Code       *string `json:"code"`
	RetryAfter int     `json:"-"` // seconds; 0: no header
}

// Format encodes an error in the format of an API; nil: OpenAI's.
type Format func(*Error) []byte

func (e *Error) Error() string { return e.Message }

// Types of errors in OpenAI's API, and statuses for the log.
const (
	TypeInvalid = "invalid_request_error"
	TypeServer  = "server_error"
	TypeLimit   = "rate_limit_error"

	// Statuses for the log and /metrics that are never sent.
	StatusDisplaced  = 444 // the server closed the connection to make room for another one
	StatusClientGone = 499 // the client closed the connection
)

// recorder is a ResponseWriter that records error responses and knows their format.
type recorder interface {
	RecordError(e *Error)
	ErrorFormat() Format // nil: OpenAI's
}

// New returns an error with a status, one of the types above and an optional code.
func New(status int, kind, code, format string, args ...any) *Error {
	e := &Error{Status: status, Type: kind, Message: fmt.Sprintf(format, args...)}
	if code != "" {
		e.Code = &code
	}
	return e
}

// Invalid returns a 400 error about one parameter.
func Invalid(param, format string, args ...any) *Error {
	e := New(http.StatusBadRequest, TypeInvalid, "", "%s %s", param, fmt.Sprintf(format, args...))
	e.Param = &param
	return e
}

// From converts an error of the Generator. Errors of package api get their status, others 500. chat
// states that the parameter with the prompt is messages rather than prompt.
func From(err error, chat bool) *Error {
	prompt := "prompt"
	if chat {
		prompt = "messages"
	}
	var (
		own     *Error
		full    *api.QueueFullError
		long    *api.TooLongError
		refused *api.InvalidError
		away    *api.UnavailableError
		lost    *api.LostDeviceError
	)
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &full):
		e := New(http.StatusTooManyRequests, TypeLimit, "queue_full", "the server is busy and its queue is "+
			"full; try again later")
		e.RetryAfter = max(1, int(math.Ceil(full.RetryAfter.Seconds())))
		return e
	case errors.As(err, &long):
		e := New(http.StatusBadRequest, TypeInvalid, "context_length_exceeded", "%s", long.Error())
		e.Param = &prompt
		if long.Param != "" {
			e.Param = &long.Param
		}
		return e
	case errors.As(err, &refused):
		e := New(http.StatusBadRequest, TypeInvalid, "", "%s", refused.Error())
		switch model := "model"; {
		case refused.Model:
			e.Param = &model
		case refused.Param != "":
			e.Param = &refused.Param
		}
		return e
	case errors.As(err, &away):
		e := New(http.StatusServiceUnavailable, TypeServer, "unavailable", "%s", away.Reason)
		e.RetryAfter = 10
		return e
	case errors.As(err, &lost):
		e := New(http.StatusServiceUnavailable, TypeServer, "device_lost", "%s", lost.Error())
		e.RetryAfter = 1
		return e
	case errors.Is(err, api.ErrClosed):
		return New(http.StatusServiceUnavailable, TypeServer, "shutting_down", "%s", api.ErrClosed.Error())
	}
	return New(http.StatusInternalServerError, TypeServer, "", "generation failed: %v", err)
}

// Body returns the JSON of the error. It does not escape <, > and &, because some clients search
// the raw body for "N tokens > M maximum".
func (e *Error) Body() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(struct { // encoding strings cannot fail
		Error *Error `json:"error"`
	}{e})
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// BodyFor returns the error in the format of the API that w serves.
func (e *Error) BodyFor(w http.ResponseWriter) []byte {
	if x, ok := w.(recorder); ok {
		if format := x.ErrorFormat(); format != nil {
			return format(e)
		}
	}
	return e.Body()
}

// Record records the error for the log line of the request that w answers.
func (e *Error) Record(w http.ResponseWriter) {
	if x, ok := w.(recorder); ok {
		x.RecordError(e)
	}
}

// Write records the error and sends it as the whole response. It sends nothing to displaced
// connections.
func (e *Error) Write(w http.ResponseWriter) {
	e.Record(w)
	if e.Status == StatusDisplaced {
		return
	}
	h := w.Header()
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(e.RetryAfter))
	}
	if e.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	jsontext.Write(w, e.Status, e.BodyFor(w))
}

// ClientGone reports whether the client closed the connection, rather than the server ending the
// request.
func ClientGone(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), api.ErrClosed)
}
