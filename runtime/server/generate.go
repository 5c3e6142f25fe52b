package server

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/server/apierr"
)

// generate returns the handler of /v1/chat/completions or /v1/completions.
func (s *Server) generate(chat bool) func(http.ResponseWriter, *http.Request) {
	parse := parseCompletion
	if chat {
		parse = parseChat
	}
	return func(w http.ResponseWriter, r *http.Request) {
		s.answering(w, r, parse, func(x *exchange, r *http.Request, c *call) {
			out := newStream(newAnswer(s.gen.Models()[0].ID, chat), x, &s.opts)
			if c.stream {
				s.written(x, r, c, out, newChunked(out, c))
			} else {
				s.written(x, r, c, out, newWhole(out, c))
			}
		})
	}
}

// answering reads and checks the body of a request, sets its class and salt, and calls answer.
func (s *Server) answering(w http.ResponseWriter, r *http.Request, parse func([]byte) (*call, *apierr.Error),
	answer func(*exchange, *http.Request, *call)) {
	s.counters.InFlight.Add(1)
	defer s.counters.InFlight.Add(-1)
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
	x := w.(*exchange)
	if c.Warnings == nil {
		c.Warnings = new(api.Warnings)
	}
	x.warnings = c.Warnings
	if fail = c.classify(r.Header, x.ofKey); fail != nil {
		fail.Write(w)
		return
	}
	x.class = c.Class
	c.Salt, x.stream = saltOf(x, c), c.stream
	s.note(x, c, len(body))
	answer(x, r, c)
}

// writer writes an answer in the format of one API. Methods are not called concurrently.
type writer interface {
	token(choice int, t api.Token) error
	ended(choice int, r *api.Result)
	finish(sum *api.Result)
}

// written runs a call and writes its answer with w to out.
func (s *Server) written(x *exchange, r *http.Request, c *call, out *stream, w writer) {
	defer out.close()
	if !c.stream {
		out.close() // no heartbeat: nothing is written before the end
	}
	c.Queued = func(q api.Queue) {
		out.queued(q)
		s.noteCache(x, q)
	}
	c.Progress = out.progress
	out.eager = c.progress
	out.start()
	result, err := s.answer(r.Context(), x, c, w)
	switch {
	case apierr.ClientGone(r.Context()):
		x.status = apierr.StatusClientGone
	case err != nil:
		x.status = out.fail(apierr.From(causeOf(r.Context(), err), out.chat))
	default:
		s.finished(x, &result)
		w.finish(&result)
	}
}

// saltOf returns the salt of the prefix cache for a call: that of its API key, combined with
// cache_salt if the client sets it.
func saltOf(x *exchange, c *call) [sha256.Size]byte {
	if c.cacheSalt == "" {
		return x.salt
	}
	return sha256.Sum256(append(x.salt[:], c.cacheSalt...))
}

// note logs ignored fields and, at level Debug, the parameters of a request without its prompt.
func (s *Server) note(x *exchange, c *call, body int) {
	l := s.opts.Log
	if l == nil {
		return
	}
	for _, name := range c.unknown {
		if s.unknown.add(name) {
			l.Warn("ignored an unknown field of a request; it is logged once",
				"id", x.id, "field", name)
		}
	}
	p := &c.Sampling
	l.Debug("parameters", "id", x.id, "body_bytes", body, "messages", len(c.Messages), "max_tokens", c.MaxTokens,
		"class", c.Class.String(), "priority", c.Priority,
		slog.Group("sampling", "temperature", p.Temperature, "top_p", p.TopP, "min_p", p.MinP, "top_k", p.TopK,
			"repeat_penalty", p.RepeatPenalty, "frequency_penalty", p.FrequencyPenalty,
			"presence_penalty", p.PresencePenalty, "seeded", c.seeded),
		"stops", len(c.Stop), "ignore_eos", c.IgnoreEOS, "logprobs", c.Logprobs, "top_logprobs", c.TopLogprobs)
}

// cacheValue returns the number of cached tokens, the length of the prompt and, if known, the index
// of the first token that differs from the most similar recent prompt.
func cacheValue(q api.Queue) string {
	value := fmt.Sprintf("hit=%d; prompt=%d", q.Cached, q.Prompt)
	if q.Diverged >= 0 {
		value += fmt.Sprintf("; diverged=%d", q.Diverged)
	}
	return value
}

// noteCache logs the same figures at level Debug.
func (s *Server) noteCache(x *exchange, q api.Queue) {
	if l := s.opts.Log; l != nil && q.Prompt > 0 && l.Enabled(context.Background(), slog.LevelDebug) {
		a := []any{"id", x.id, "hit", q.Cached, "prompt", q.Prompt}
		if q.Diverged >= 0 {
			a = append(a, "diverged", q.Diverged)
		}
		l.Debug("prompt cache", a...)
	}
}

// refused writes an error of the Generator for a request that generates nothing.
func (s *Server) refused(x *exchange, r *http.Request, err error) {
	if apierr.ClientGone(r.Context()) {
		x.status = apierr.StatusClientGone
		return
	}
	apierr.From(causeOf(r.Context(), err), true).Write(x)
}

// finished counts a successful generation.
func (s *Server) finished(x *exchange, r *api.Result) {
	x.result = r
	s.counters.Finished(r, x.class, time.Since(x.begun))
}

// timed wraps emit to observe the times between tokens of a choice. Text held back after the last
// token counts as a token.
func (s *Server) timed(x *exchange, emit func(api.Token) error) func(api.Token) error {
	var last time.Time
	return func(t api.Token) error {
		if !t.Prompt {
			now := time.Now()
			switch {
			case x.tokens == 0:
				s.counters.FirstToken(x.class, now.Sub(x.begun))
			case !last.IsZero():
				s.counters.BetweenTokens(x.class, now.Sub(last))
			}
			last = now
			x.token(now)
		}
		return emit(t)
	}
}

// setQueue sets the response headers with the state of the queue.
func setQueue(h http.Header, q api.Queue) {
	if q.Prompt > 0 {
		h.Set(queueCache, cacheValue(q))
	}
	h.Set(queuePlace, strconv.Itoa(q.Ahead))
	seconds := func(name string, d time.Duration) { h.Set(name, strconv.FormatFloat(d.Seconds(), 'f', 3, 64)) }
	if q.Wait > 0 || q.Ahead == 0 {
		seconds(queueWait, q.Wait)
	}
	if q.First > 0 {
		seconds(queueFirst, q.First)
	}
}

// causeOf returns the cause if ctx has ended, else err: the reason why the server ended a request
// is more useful than the error that this caused.
func causeOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
