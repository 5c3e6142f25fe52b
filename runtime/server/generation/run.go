// Package generation runs the requests of all APIs on a Generator: it reads bodies within bounds,
// runs the choices of a request and counts them.
package generation

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/exchange"
	"sandwich/runtime/server/jsontext"
	"sandwich/runtime/server/metrics"
	"sandwich/runtime/server/request"
)

// Limits bounds the requests of a runner and says how it reads them.
type Limits struct {
	MaxBody     int64         // maximum bytes of one body
	BodyBudget  int64         // maximum bytes of all bodies in memory
	BodyTimeout time.Duration // to receive a body, plus one second for each conntable.MinBodyRate bytes
	Heartbeat   time.Duration // interval of keep-alive messages in a quiet stream
	Stable      bool          // move volatile lines of system prompts (Options.StablePrefix of package server)
}

// Runner reads the requests of all APIs, runs them on a model and counts them. Its methods may
// be called concurrently once Router is set.
type Runner struct {
	Router   Router // set before the first request is admitted
	Limits   Limits
	logger   *slog.Logger // nil: no log
	bodies   budget
	Counters metrics.Counters
	unknown  nameSet // unknown fields that were logged
}

// NewRunner returns a runner without a Router.
func NewRunner(l Limits, logger *slog.Logger) *Runner {
	r := &Runner{Limits: l, logger: logger}
	r.bodies.left.Store(l.BodyBudget)
	return r
}

// BodyMemory returns the bytes of all bodies in memory.
func (s *Runner) BodyMemory() int64 { return s.Limits.BodyBudget - s.bodies.left.Load() }

// Handle reads the body of a request, parses it with parse, finds its model, sets its class and
// salt, and calls answer. It writes an error response itself. w must be an *exchange.Exchange.
func (s *Runner) Handle(w http.ResponseWriter, r *http.Request, parse func([]byte) (*request.Call, *apierr.Error),
	answer func(*exchange.Exchange, *http.Request, *request.Call, Generator)) {
	s.Counters.InFlight.Add(1)
	defer s.Counters.InFlight.Add(-1)
	body, release, fail := s.readBody(w, r)
	if fail != nil {
		fail.Write(w)
		return
	}
	defer release()
	c, fail := parse(body)
	if fail != nil {
		fail.Write(w)
		return
	}
	x := w.(*exchange.Exchange)
	if c.Warnings == nil {
		c.Warnings = new(api.Warnings)
	}
	x.Warnings = c.Warnings
	if s.Limits.Stable {
		stabilize(c)
	}
	if c.Model == "" {
		c.Model = jsontext.Member(body, "model")
	}
	m, ok := s.Router.Route(c.Model, Key(x.Salt))
	if !ok {
		UnknownModel(c.Model).Write(w)
		return
	}
	defer m.Close()
	urgency := x.KeyUrgency
	if urgency == (request.Urgency{}) {
		urgency = m.Model().Urgency
	}
	if fail = c.Classify(r.Header, urgency); fail != nil {
		fail.Write(w)
		return
	}
	x.Class, x.Model = c.Class, m.Model().ID
	c.Salt, x.Stream = saltOf(x, c), c.Stream
	s.note(x, c, len(body))
	answer(x, r, c, m)
}

// writer writes an answer in the format of one API. Methods are not called concurrently.
type writer interface {
	Token(choice int, t api.Token) error
	Ended(choice int, r *api.Result)
	Finish(sum *api.Result)
}

// UnknownModel returns the error for a request that names a model that it may not use. It does not
// tell whether the model exists.
func UnknownModel(name string) *apierr.Error {
	return apierr.New(http.StatusNotFound, apierr.TypeInvalid, "model_not_found", "unknown model %q; see /v1/models",
		jsontext.Clip(name))
}

// Respond runs a call on a model and writes its answer, or an error response, to out with w.
func (s *Runner) Respond(x *exchange.Exchange, r *http.Request, c *request.Call, on Generator,
	out *exchange.Stream, w writer) {
	defer out.Close()
	if !c.Stream {
		out.Close() // no heartbeat: nothing is written before the end
	}
	c.Queued = func(q api.Queue) {
		out.Queued(q)
		s.noteCache(x, q)
	}
	c.Progress = out.Progress
	if c.Stream {
		c.Loading = out.Loading
	}
	out.ReportProgress = c.ReportProgress
	out.Start()
	result, err := s.answer(r.Context(), x, c, on, w)
	switch {
	case apierr.ClientGone(r.Context()):
		x.Status = apierr.StatusClientGone
	case err != nil:
		x.Status = out.Fail(apierr.From(Cause(r.Context(), err), out.Chat))
	default:
		s.Finished(x, &result)
		w.Finish(&result)
	}
}

// saltOf returns the salt of the prefix cache for a call: that of its API key, combined with
// cache_salt if the client sets it.
func saltOf(x *exchange.Exchange, c *request.Call) [sha256.Size]byte {
	if c.CacheSalt == "" {
		return x.Salt
	}
	return sha256.Sum256(append(x.Salt[:], c.CacheSalt...))
}

// note logs ignored fields and, at level Debug, the parameters of a request without its prompt.
func (s *Runner) note(x *exchange.Exchange, c *request.Call, body int) {
	l := s.logger
	if l == nil {
		return
	}
	for _, name := range c.Unknown {
		if s.unknown.add(name) {
			l.Warn("ignored an unknown field of a request; it is logged once",
				"id", x.ID, "field", name)
		}
	}
	p := &c.Sampling
	l.Debug("parameters", "id", x.ID, "body_bytes", body, "messages", len(c.Messages), "max_tokens", c.MaxTokens,
		"class", c.Class.String(), "priority", c.Priority,
		slog.Group("sampling", "temperature", p.Temperature, "top_p", p.TopP, "min_p", p.MinP, "top_k", p.TopK,
			"repeat_penalty", p.RepeatPenalty, "frequency_penalty", p.FrequencyPenalty,
			"presence_penalty", p.PresencePenalty, "seeded", c.Seeded),
		"stops", len(c.Stop), "ignore_eos", c.IgnoreEOS, "logprobs", c.Logprobs, "top_logprobs", c.TopLogprobs)
}

// noteCache logs the same figures at level Debug.
func (s *Runner) noteCache(x *exchange.Exchange, q api.Queue) {
	if l := s.logger; l != nil && q.Prompt > 0 && l.Enabled(context.Background(), slog.LevelDebug) {
		a := []any{"id", x.ID, "hit", q.Cached, "disk", q.Stored, "prompt", q.Prompt}
		if q.Diverged >= 0 {
			a = append(a, "diverged", q.Diverged)
		}
		l.Debug("prompt cache", a...)
	}
}

// Refuse writes an error of the Generator for a request that generates nothing.
func (s *Runner) Refuse(x *exchange.Exchange, r *http.Request, err error) {
	if apierr.ClientGone(r.Context()) {
		x.Status = apierr.StatusClientGone
		return
	}
	apierr.From(Cause(r.Context(), err), true).Write(x)
}

// Finished counts a successful generation.
func (s *Runner) Finished(x *exchange.Exchange, r *api.Result) {
	x.Result = r
	s.Counters.Finished(r, seriesOf(x), time.Since(x.Start))
}

// seriesOf returns the series of the histograms that count a request.
func seriesOf(x *exchange.Exchange) metrics.Series {
	return metrics.Series{Model: x.Model, Class: x.Class}
}

// timed wraps emit to observe the times between tokens of a choice. Text held back after the last
// token counts as a token.
func (s *Runner) timed(x *exchange.Exchange, emit func(api.Token) error) func(api.Token) error {
	var last time.Time
	return func(t api.Token) error {
		if !t.Prompt {
			now := time.Now()
			switch {
			case x.Tokens == 0:
				s.Counters.FirstToken(seriesOf(x), now.Sub(x.Start))
			case !last.IsZero():
				s.Counters.BetweenTokens(seriesOf(x), now.Sub(last))
			}
			last = now
			x.NoteToken(now)
		}
		return emit(t)
	}
}

// Cause returns the cause if ctx has ended, else err: the reason why the server ended a request
// is more useful than the error that this caused.
func Cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
