package server

import (
	"net/http"
	"sync"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/jsontext"
)

// stream is the connection that an answer is written to, for writers of all APIs: server-sent
// events or one object. Nothing is written before the first token, so that errors still have their
// status. If the first token takes long, comments keep proxies and clients from timing out.
type stream struct {
	*answer
	w       http.ResponseWriter
	rc      *http.ResponseController
	opts    *Options
	kind    string // Content-Type of a stream
	failure string // prefix of an error's JSON
	failed  string // suffix of an error's JSON
	pulse   func() // adds a keep-alive message, with the progress of the prompt, to buf; called with mu held
	eager   bool   // report every progress
	began   time.Time

	mu     sync.Mutex // guards the rest; the heartbeat writes concurrently with Generate
	buf    []byte
	opened bool // the header was written
	over   bool
	soon   bool         // the next heartbeat sends the header
	read   api.Progress // progress of the prompt
	last   time.Time
	beat   *time.Timer
}

// newStream returns the stream of an answer.
func newStream(a *answer, w http.ResponseWriter, o *Options) *stream {
	s := &stream{answer: a, w: w, rc: http.NewResponseController(w), opts: o, kind: "text/event-stream",
		failure: "data: ", failed: "\n\n", began: time.Now(), last: time.Now()}
	s.pulse = s.comment
	const never = 1 << 62
	s.beat = time.AfterFunc(never, s.heartbeat)
	return s
}

// start starts the heartbeat. It must be called after the writer has set pulse.
func (s *stream) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.beat.Reset(s.opts.Heartbeat)
	}
}

// queued sets the queue headers unless the header was sent. If the first token is far away, it
// schedules the header soon after the point at which a refusal would have occurred.
func (s *stream) queued(q api.Queue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened {
		return
	}
	setQueue(s.w.Header(), q)
	if !s.over && q.First >= s.opts.Heartbeat/longPrompt {
		s.soon = true
		s.beat.Reset(s.opts.Heartbeat / longPrompt)
	}
}

// longPrompt determines how often progress is reported: every Options.Heartbeat/longPrompt, and
// only for prompts that take longer than that.
const longPrompt = 10

// progress reports the progress of the prompt on an open stream.
func (s *stream) progress(p api.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read = p
	if s.over || !s.eager && (!s.opened || time.Since(s.last) < s.opts.Heartbeat/longPrompt) {
		return
	}
	s.pulse()
	s.header()
	_ = s.flush() // Generate notices by its context or its next token
}

// appendProgress appends the progress of the prompt in llama-server's format.
func appendProgress(b []byte, p api.Progress) []byte {
	b = jsontext.AppendInt(append(b, `"prompt_progress":{"total":`...), p.Total)
	b = jsontext.AppendInt(append(b, `,"cache":`...), p.Cached)
	b = jsontext.AppendInt(append(b, `,"processed":`...), p.Done)
	return append(jsontext.AppendInt(append(b, `,"time_ms":`...), int(p.Took.Milliseconds())), '}')
}

// fail ends the stream with an error, or sends it as the response if nothing was written yet. It
// returns the status for the metrics.
func (s *stream) fail(e *apierr.Error) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
	if !s.opened {
		e.Write(s.w)
		return e.Status
	}
	s.buf = append(append(append(s.buf, s.failure...), e.BodyFor(s.w)...), s.failed...)
	s.flush()
	return e.Status
}

// ended ignores the end of a choice, for writers with one choice.
func (s *stream) ended(int, *api.Result) {}

// close stops the heartbeat.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
}

// end stops the heartbeat with the lock held.
func (s *stream) end() {
	s.over = true
	s.beat.Stop()
}

// header sends the header of a stream once.
func (s *stream) header() {
	if s.opened {
		return
	}
	s.opened = true
	h := s.w.Header()
	h.Set("Content-Type", s.kind)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	s.w.WriteHeader(http.StatusOK)
}

// flush sends the buffer. It fails if the client does not read for Options.WriteTimeout.
func (s *stream) flush() error {
	s.last = time.Now()
	_, err := s.w.Write(jsontext.EscapeSeparators(s.buf))
	s.buf = s.buf[:0]
	if err != nil {
		return err
	}
	return s.rc.Flush()
}

// comment adds a comment, which readers of events ignore.
func (s *stream) comment() { s.buf = append(s.buf, ": waiting\n\n"...) }

// heartbeat sends a keep-alive message if nothing was sent for a while.
func (s *stream) heartbeat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	quiet := time.Since(s.last)
	if quiet >= s.opts.Heartbeat || s.soon && !s.opened {
		s.header()
		s.pulse()
		if s.flush() != nil {
			return // Generate notices by its context or its next token
		}
		quiet = 0
	}
	s.beat.Reset(s.opts.Heartbeat - quiet)
}
