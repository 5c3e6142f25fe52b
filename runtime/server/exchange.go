package server

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"time"

	"sandwich/runtime/api"
)

// exchange is one request and its answer: the ResponseWriter of its handlers,
// which remembers what the metrics and the log say of it.
type exchange struct {
	http.ResponseWriter
	id     string
	route  string // one of few, whatever the client asked for
	method string
	begun  time.Time
	status int
	salt   [sha256.Size]byte // of the key that it came with
	class  api.Class
	ofKey  urgency    // of requests that state none
	failed *apiError  // what it was answered, if it was
	shape  errorShape // of its route

	warnings *api.Warnings // of the request, for a header; may be nil

	// Of a generation.
	stream      bool
	result      *api.Result // nil where it did not end well
	tokens      int         // so far
	first, last time.Time
}

const requestID = "X-Request-Id"

func newExchange(w http.ResponseWriter, r *http.Request, route string) *exchange {
	x := &exchange{ResponseWriter: w, route: route, method: clip(r.Method), begun: time.Now(), status: http.StatusOK}
	if x.id = r.Header.Get(requestID); !isCleanID(x.id) {
		x.id = "req-" + rand.Text()
	}
	w.Header().Set(requestID, x.id)
	return x
}

// isCleanID says whether a client's own id may stand in the log and in a header.
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

// WriteHeader sends the header, with the warnings that were collected up to now.
func (x *exchange) WriteHeader(status int) {
	x.status = status
	if list := x.warnings.List(); len(list) > 0 {
		x.Header().Set(warningsHeader, warningsValue(list))
	}
	x.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// token notes that a token came.
func (x *exchange) token(now time.Time) {
	if x.tokens++; x.tokens == 1 {
		x.first = now
	}
	x.last = now
}

// log writes the one line of the exchange. It holds nothing of what was asked or
// answered, and no key. What only probes ask for is of interest to few.
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

// millis is a duration to the microsecond, as a number that every reader of logs can add up.
func millis(name string, d time.Duration) slog.Attr {
	return slog.Float64(name, float64(d.Microseconds())/1000)
}
