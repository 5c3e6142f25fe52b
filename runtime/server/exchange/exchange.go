// Package exchange writes the responses of generation requests: headers, streams with keep-alive
// messages, warnings and log probabilities, and the log line of each request.
package exchange

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/jsontext"
	"sandwich/runtime/server/request"
	"sandwich/runtime/server/tracing"
)

// Exchange is one HTTP request with its response. It is the ResponseWriter of the handlers and
// records what metrics and log report.
type Exchange struct {
	http.ResponseWriter
	ID         string
	Trace      string // id of the trace, of the client's traceparent header or of Spans; "": none
	Spans      *tracing.Request
	Route      string // path pattern of the route: one of a fixed set
	Method     string
	Start      time.Time
	Status     int
	Salt       [sha256.Size]byte // of the API key
	Class      api.Class
	Model      string          // that answers
	KeyUrgency request.Urgency // default urgency of the API key
	Err        *apierr.Error   // the error response, if any
	Format     apierr.Format   // error format of the route

	Warnings *api.Warnings // for a header; may be nil

	// Fields of generation requests.
	Stream      bool
	Result      *api.Result // nil unless the generation succeeded
	Tokens      int         // number of tokens so far
	first, last time.Time
}

// RequestID names the header with the id of a request.
const RequestID = "X-Request-Id"

// NewExchange returns the exchange of a request to a route. It keeps the client's request id if
// that is valid, else it makes one.
func NewExchange(w http.ResponseWriter, r *http.Request, route string) *Exchange {
	x := &Exchange{ResponseWriter: w, Route: route, Method: jsontext.Clip(r.Method), Start: time.Now(),
		Status: http.StatusOK}
	if x.ID = r.Header.Get(RequestID); !isCleanID(x.ID) {
		x.ID = "req-" + rand.Text()
	}
	w.Header().Set(RequestID, x.ID)
	x.Trace = tracing.TraceID(r.Header.Get("Traceparent"))
	return x
}

// isCleanID reports whether a client's request id may appear in the log and in a header.
func isCleanID(id string) bool {
	for i := range len(id) {
		c := id[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.', c == ':':
		default:
			return false
		}
	}
	return id != "" && len(id) <= 128
}

// WriteHeader sends the header with the warnings collected so far.
func (x *Exchange) WriteHeader(status int) {
	x.Status = status
	if list := x.Warnings.List(); len(list) > 0 {
		x.Header().Set(WarningsHeader, warningsValue(list))
	}
	x.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController access the connection.
func (x *Exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// RecordError records an error response for the log.
func (x *Exchange) RecordError(e *apierr.Error) {
	if x.Err = e; e.Status == apierr.StatusDisplaced {
		x.Status = e.Status
	}
}

// ErrorFormat returns the error format of the route; nil: OpenAI's.
func (x *Exchange) ErrorFormat() apierr.Format { return x.Format }

// NoteToken records the time of a token.
func (x *Exchange) NoteToken(now time.Time) {
	if x.Tokens++; x.Tokens == 1 {
		x.first = now
	}
	x.last = now
}

// quiet has the routes that programs and the page request at intervals.
var quiet = map[string]bool{"/health": true, "/metrics": true, "/v1/sandwich/status": true,
	"/v1/sandwich/plan": true, "/page/{file}": true}

// Log writes one line about the exchange. It contains no prompt, answer or key. Successful requests
// of quiet routes are logged at level Debug.
func (x *Exchange) Log(l *slog.Logger) {
	if l == nil {
		return
	}
	level := slog.LevelInfo
	if x.Method == http.MethodGet && quiet[x.Route] && x.Status < http.StatusBadRequest {
		level = slog.LevelDebug
	}
	a := []slog.Attr{
		slog.String("id", x.ID), slog.String("method", x.Method), slog.String("route", x.Route),
		slog.Int("status", x.Status),
	}
	if x.Trace != "" {
		a = append(a, slog.String("trace_id", x.Trace))
	}
	if x.Class != api.Reactive {
		a = append(a, slog.String("class", x.Class.String()))
	}
	if e := x.Err; e != nil {
		if e.Code != nil {
			a = append(a, slog.String("error", *e.Code))
		}
		if e.Param != nil {
			a = append(a, slog.String("param", *e.Param))
		}
	}
	if r := x.Result; r != nil {
		a = append(a, slog.Int("prompt_tokens", r.PromptTokens), slog.Int("cached_tokens", r.CachedTokens),
			slog.Int("completion_tokens", r.Tokens), slog.String("finish", string(r.Finish)),
			millis("queue_ms", r.Queued))
		if r.DraftedTokens > 0 {
			a = append(a, slog.Int("drafted_tokens", r.DraftedTokens), slog.Int("accepted_tokens", r.AcceptedTokens))
		}
	} else if x.Tokens > 0 {
		a = append(a, slog.Int("completion_tokens", x.Tokens))
	}
	if x.Tokens > 0 {
		a = append(a, slog.Bool("stream", x.Stream), millis("ttft_ms", x.first.Sub(x.Start)))
	}
	if x.Tokens > 1 {
		a = append(a, millis("tpot_ms", x.last.Sub(x.first)/time.Duration(x.Tokens-1)))
	}
	a = append(a, millis("total_ms", time.Since(x.Start)))
	l.LogAttrs(context.Background(), level, "request", a...)
}

// millis returns a duration in milliseconds with microsecond resolution.
func millis(name string, d time.Duration) slog.Attr {
	return slog.Float64(name, float64(d.Microseconds())/1000)
}
