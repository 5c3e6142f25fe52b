package server

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
)

// apiError is an error response in OpenAI's format.
type apiError struct {
	status     int
	Message    string  `json:"message"`
	Type       string  `json:"type"`
	Param      *string `json:"param"`
	Code       *string `json:"code"`
	retryAfter int     // seconds; 0: no header
}

// errorShape encodes an error in the format of an API; nil: OpenAI's.
type errorShape func(*apiError) []byte

func (e *apiError) Error() string { return e.Message }

const (
	typeInvalid = "invalid_request_error"
	typeServer  = "server_error"
	typeLimit   = "rate_limit_error"

	// Statuses for the log and /metrics that are never sent.
	statusDisplaced = 444 // the server closed the connection to make room for another one
	statusHungUp    = 499 // the client closed the connection
)

// newError returns an error of a kind, with an optional code.
func newError(status int, kind, code, format string, args ...any) *apiError {
	e := &apiError{status: status, Type: kind, Message: fmt.Sprintf(format, args...)}
	if code != "" {
		e.Code = &code
	}
	return e
}

// invalid returns a 400 error about one parameter.
func invalid(param, format string, args ...any) *apiError {
	e := newError(http.StatusBadRequest, typeInvalid, "", "%s %s", param, fmt.Sprintf(format, args...))
	e.Param = &param
	return e
}

// asAPIError converts an error of the Generator. chat selects the name of the parameter that holds
// the prompt.
func asAPIError(err error, chat bool) *apiError {
	prompt := "prompt"
	if chat {
		prompt = "messages"
	}
	var (
		own     *apiError
		full    *api.QueueFullError
		long    *api.TooLongError
		refused *api.InvalidError
		away    *api.UnavailableError
	)
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &full):
		e := newError(http.StatusTooManyRequests, typeLimit, "queue_full", "the server is busy and its queue is "+
			"full; try again later")
		e.retryAfter = max(1, int(math.Ceil(full.RetryAfter.Seconds())))
		return e
	case errors.As(err, &long):
		e := newError(http.StatusBadRequest, typeInvalid, "context_length_exceeded", "%s", long.Error())
		e.Param = &prompt
		if long.Param != "" {
			e.Param = &long.Param
		}
		return e
	case errors.As(err, &refused):
		e := newError(http.StatusBadRequest, typeInvalid, "", "%s", refused.Error())
		switch model := "model"; {
		case refused.Model:
			e.Param = &model
		case refused.Param != "":
			e.Param = &refused.Param
		}
		return e
	case errors.As(err, &away):
		e := newError(http.StatusServiceUnavailable, typeServer, "unavailable", "%s", away.Reason)
		e.retryAfter = 10
		return e
	case errors.Is(err, api.ErrClosed):
		return newError(http.StatusServiceUnavailable, typeServer, "shutting_down", "%s", api.ErrClosed.Error())
	}
	return newError(http.StatusInternalServerError, typeServer, "", "generation failed: %v", err)
}

// body returns the JSON of the error. It does not escape <, > and &, because some clients search
// the raw body for "N tokens > M maximum".
func (e *apiError) body() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(struct { // encoding strings cannot fail
		Error *apiError `json:"error"`
	}{e})
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// bodyFor returns the error in the format of the API that w serves.
func (e *apiError) bodyFor(w http.ResponseWriter) []byte {
	if x, ok := w.(*exchange); ok && x.shape != nil {
		return x.shape(e)
	}
	return e.body()
}

// write sends the error as the whole response. It sends nothing to displaced connections.
func (e *apiError) write(w http.ResponseWriter) {
	if x, ok := w.(*exchange); ok {
		x.failed = e
		if e.status == statusDisplaced {
			x.status = e.status
			return
		}
	}
	h := w.Header()
	if e.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(e.retryAfter))
	}
	if e.status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	writeJSON(w, e.status, e.bodyFor(w))
}

// writeJSON sends a complete JSON response.
func writeJSON(w http.ResponseWriter, status int, body []byte) {
	body = escapeSeparators(body)
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body)
}

// hungUp reports whether the client closed the connection, rather than the server ending the
// request.
func hungUp(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), api.ErrClosed)
}
