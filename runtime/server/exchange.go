package server

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
)

// exchange is one HTTP request with its response. It is the ResponseWriter of the handlers and
// records what metrics and log report.
type exchange struct {
	http.ResponseWriter
	id     string
	route  string // path pattern of the route: one of a fixed set
	method string
	begun  time.Time
	status int
	salt   [sha256.Size]byte // of the API key
	class  api.Class
	ofKey  urgency       // default urgency of the API key
	failed *apierr.Error // the error response, if any
	shape  apierr.Format // error format of the route

	warnings *api.Warnings // for a header; may be nil

	// Fields of generation requests.
	stream      bool
	result      *api.Result // nil unless the generation succeeded
	tokens      int         // number of tokens so far
	first, last time.Time
}

const requestID = "X-Request-Id"

// newExchange returns the exchange of a request. It takes over the client's request id if that is
// valid.
func newExchange(w http.ResponseWriter, r *http.Request, route string) *exchange {
	x := &exchange{ResponseWriter: w, route: route, method: jsontext.Clip(r.Method), begun: time.Now(),
		status: http.StatusOK}
	if x.id = r.Header.Get(requestID); !isCleanID(x.id) {
		x.id = "req-" + rand.Text()
	}
	w.Header().Set(requestID, x.id)
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
func (x *exchange) WriteHeader(status int) {
	x.status = status
	if list := x.warnings.List(); len(list) > 0 {
		x.Header().Set(warningsHeader, warningsValue(list))
	}
	x.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController access the connection.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// RecordError records an error response for the log.
func (x *exchange) RecordError(e *apierr.Error) {
	if x.failed = e; e.Status == apierr.StatusDisplaced {
		x.status = e.Status
	}
}

// ErrorFormat returns the error format of the route; nil: OpenAI's.
func (x *exchange) ErrorFormat() apierr.Format { return x.shape }

// token records the time of a token.
func (x *exchange) token(now time.Time) {
	if x.tokens++; x.tokens == 1 {
		x.first = now
	}
	x.last = now
}

// log writes one line about the exchange. It contains no prompt, answer or key. Successful probes
// are logged at level Debug.
func (x *exchange) log(l *slog.Logger) {
	if l == nil {
		return
	}
	level := slog.LevelInfo
	if x.method == http.MethodGet && (x.route == "/health" || x.route == "/metrics") && x.status == http.StatusOK {
		level = slog.LevelDebug
	}
	a := []slog.Attr{
		slog.String("id", x.id), slog.String("method", x.method), slog.String("route", x.route),
		slog.Int("status", x.status),
	}
	if x.class != api.Reactive {
		a = append(a, slog.String("class", x.class.String()))
	}
	if e := x.failed; e != nil {
		if e.Code != nil {
			a = append(a, slog.String("error", *e.Code))
		}
		if e.Param != nil {
			a = append(a, slog.String("param", *e.Param))
		}
	}
	if r := x.result; r != nil {
		a = append(a, slog.Int("prompt_tokens", r.PromptTokens), slog.Int("cached_tokens", r.CachedTokens),
			slog.Int("completion_tokens", r.Tokens), slog.String("finish", string(r.Finish)),
			millis("queue_ms", r.Queued))
	} else if x.tokens > 0 {
		a = append(a, slog.Int("completion_tokens", x.tokens))
	}
	if x.tokens > 0 {
		a = append(a, slog.Bool("stream", x.stream), millis("ttft_ms", x.first.Sub(x.begun)))
	}
	if x.tokens > 1 {
		a = append(a, millis("tpot_ms", x.last.Sub(x.first)/time.Duration(x.tokens-1)))
	}
	a = append(a, millis("total_ms", time.Since(x.begun)))
	l.LogAttrs(context.Background(), level, "request", a...)
}

// millis returns a duration in milliseconds with microsecond resolution.
func millis(name string, d time.Duration) slog.Attr {
	return slog.Float64(name, float64(d.Microseconds())/1000)
}
