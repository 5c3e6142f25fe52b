package server

import (
	"net/http"
	"sync"
	"time"

	"sandwich/runtime/api"
)

// stream is the connection of an answer, which writers of all APIs write to: server-sent events, or
// one object. Nothing is written before the
// first token, so that a refusal still has its status; where the first token
// takes long, comments keep proxies and clients from giving up.
type stream struct {
	*answer
	w       http.ResponseWriter
	rc      *http.ResponseController
	opts    *Options
	kind    string // the Content-Type of what streams
	failure string // what stands before the JSON of an error
	failed  string // and behind it
	pulse   func() // adds to buf what keeps a client waiting, and what is read of the prompt, under mu
	eager   bool   // which is wanted as often as it is known
	began   time.Time

	mu     sync.Mutex // the heartbeat writes beside Generate
	buf    []byte
	opened bool // the header is written
	over   bool
	soon   bool         // the next beat is for the header
	read   api.Progress // of the prompt
	last   time.Time
	beat   *time.Timer
}

func newStream(a *answer, w http.ResponseWriter, o *Options) *stream {
	s := &stream{answer: a, w: w, rc: http.NewResponseController(w), opts: o, kind: "text/event-stream",
		failure: "data: ", failed: "\n\n", began: time.Now(), last: time.Now()}
	s.pulse = s.comment
	const never = 1 << 62
	s.beat = time.AfterFunc(never, s.heartbeat)
	return s
}

// start begins the heartbeat, once what writes over the stream is made.
func (s *stream) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.beat.Reset(s.opts.Heartbeat)
	}
}

// queued says in the header how the request stood when it came, where that is not written yet. The
// header of a stream whose first token is far goes out soon, when a refusal would have come.
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

// longPrompt is which part of Options.Heartbeat a prompt takes at least whose progress is told, and
// how often it is.
const longPrompt = 10

// progress tells how far the prompt is, on a stream that is open for waiting so long.
func (s *stream) progress(p api.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read = p
	if s.over || !s.eager && (!s.opened || time.Since(s.last) < s.opts.Heartbeat/longPrompt) {
		return
	}
	s.pulse()
	s.header()
	_ = s.flush() // Generate finds out by its context or its next token
}

// appendProgress appends how far the prompt is, in the words of llama-server.
func appendProgress(b []byte, p api.Progress) []byte {
	b = appendInt(append(b, `"prompt_progress":{"total":`...), p.Total)
	b = appendInt(append(b, `,"cache":`...), p.Cached)
	b = appendInt(append(b, `,"processed":`...), p.Done)
	return append(appendInt(append(b, `,"time_ms":`...), int(p.Took.Milliseconds())), '}')
}

// fail ends the stream with an error, or answers with its status where nothing
// was written yet. It returns the status for the count.
func (s *stream) fail(e *apiError) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
	if !s.opened {
		e.write(s.w)
		return e.status
	}
	s.buf = append(append(append(s.buf, s.failure...), e.bodyFor(s.w)...), s.failed...)
	s.flush()
	return e.status
}

// ended is told of the end of each choice; what writes one at a time learns it from finish.
func (s *stream) ended(int, *api.Result) {}

// close stops the heartbeat of a stream whose client left.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
}

func (s *stream) end() {
	s.over = true
	s.beat.Stop()
}

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

// flush sends what was gathered. It fails where the client takes nothing for Options.WriteTimeout.
func (s *stream) flush() error {
	s.last = time.Now()
	_, err := s.w.Write(escapeSeparators(s.buf))
	s.buf = s.buf[:0]
	if err != nil {
		return err
	}
	return s.rc.Flush()
}

// comment is what readers of events pass over.
func (s *stream) comment() { s.buf = append(s.buf, ": waiting\n\n"...) }

// heartbeat writes a comment where nothing was written for a while.
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
			return // Generate finds out by its context or its next token
		}
		quiet = 0
	}
	s.beat.Reset(s.opts.Heartbeat - quiet)
}
