package server

import (
	"net/http"
	"sync"
	"time"

	"sandwich/runtime/api"
)

// stream writes an answer as server-sent events. Nothing is written before the
// first token, so that a refusal still has its status; where the first token
// takes long, comments keep proxies and clients from giving up.
type stream struct {
	*answer
	w        http.ResponseWriter
	rc       *http.ResponseController
	opts     *Options
	usage    bool // every chunk has the field usage, null but in the last
	logprobs bool
	failure  string // what stands before the JSON of an error

	mu      sync.Mutex // the heartbeat writes beside Generate
	head    []byte     // `data: {...,"choices":[`
	buf     []byte
	offset  int  // bytes of the tokens so far, for text_offset
	opened  bool // the header is written
	started bool // and the role
	ended   bool
	last    time.Time
	beat    *time.Timer
}

func newStream(a *answer, w http.ResponseWriter, c *call, o *Options) *stream {
	s := &stream{answer: a, w: w, rc: http.NewResponseController(w), opts: o, usage: c.usage, logprobs: c.Logprobs,
		failure: "data: ", last: time.Now()}
	object := "text_completion"
	if a.chat {
		object = "chat.completion.chunk"
	}
	s.head = append(a.appendHead([]byte("data: "), object), `,"choices":[`...)
	// Under the lock, because a beat looks at s.beat.
	s.mu.Lock()
	s.beat = time.AfterFunc(o.Heartbeat, s.heartbeat)
	s.mu.Unlock()
	return s
}

// token writes one token; the error says that the client cannot be reached.
func (s *stream) token(t api.Token) error {
	if t.Text == "" && t.Reasoning == "" && len(t.Calls) == 0 && !s.logprobs {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin()
	s.appendChoice(&t, "")
	return s.flush()
}

// queued says in the header how the request stood when it came, where that is not written yet.
func (s *stream) queued(ahead int, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.opened {
		setQueue(s.w.Header(), ahead, wait)
	}
}

// finish writes the finish reason, the usage where it is wanted, and the end.
func (s *stream) finish(r *api.Result) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
	s.begin()
	s.appendChoice(&api.Token{}, r.Finish)
	if s.usage {
		s.buf = append(append(s.buf, s.head...), `],"usage":`...)
		s.buf = append(appendUsage(s.buf, r), "}\n\n"...)
	}
	s.buf = append(s.buf, "data: [DONE]\n\n"...)
	return s.flush()
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
	s.buf = append(append(append(s.buf, s.failure...), e.bodyFor(s.w)...), "\n\n"...)
	s.flush()
	return e.status
}

// close stops the heartbeat of a stream whose client left.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
}

func (s *stream) end() {
	s.ended = true
	s.beat.Stop()
}

// begin writes the header, and the role a chat begins with, once.
func (s *stream) begin() {
	if s.started {
		return
	}
	s.header()
	if s.chat {
		s.buf = append(append(s.buf, s.head...),
			`{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`...)
		s.closeChunk()
	}
	s.started = true
}

func (s *stream) header() {
	if s.opened {
		return
	}
	s.opened = true
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	s.w.WriteHeader(http.StatusOK)
}

func (s *stream) appendChoice(t *api.Token, end api.Finish) {
	b := append(s.buf, s.head...)
	switch {
	case !s.chat:
		b = appendString(append(b, `{"index":0,"text":`...), t.Text)
	case end != "":
		b = append(b, `{"index":0,"delta":{}`...)
	default:
		b = append(appendDelta(append(b, `{"index":0,"delta":{`...), t), '}')
	}
	b = append(b, `,"logprobs":`...)
	switch {
	case !s.logprobs || end != "" || t.ID == api.NoToken:
		b = append(b, "null"...)
	case s.chat:
		b = appendChatToken(append(b, `{"content":[`...), t)
		b = append(b, `],"refusal":null}`...)
	default:
		b = appendTextLogprobs(b, []api.Token{*t}, s.offset)
		s.offset += len(t.Piece)
	}
	b = append(b, `,"finish_reason":`...)
	if end == "" {
		b = append(b, "null}]"...)
	} else {
		b = append(appendString(b, string(end)), "}]"...)
	}
	s.buf = b
	s.closeChunk()
}

// appendDelta appends what a token adds to the message of a chat.
func appendDelta(b []byte, t *api.Token) []byte {
	if t.Reasoning != "" {
		b = append(appendString(append(b, `"reasoning_content":`...), t.Reasoning), ',')
	}
	if t.Text != "" || t.Reasoning == "" && len(t.Calls) == 0 {
		b = append(appendString(append(b, `"content":`...), t.Text), ',')
	}
	for i, c := range t.Calls {
		if i == 0 {
			b = append(b, `"tool_calls":[`...)
		}
		b = appendInt(append(b, `{"index":`...), c.Index)
		b = append(b, ',')
		if c.Name != "" {
			b = appendString(append(b, `"id":`...), c.ID)
			b = append(b, `,"type":"function",`...)
		}
		b = append(b, `"function":{`...)
		if c.Name != "" {
			b = append(appendString(append(b, `"name":`...), c.Name), ',')
		}
		b = append(appendString(append(b, `"arguments":`...), c.Arguments), "}},"...)
	}
	if len(t.Calls) > 0 {
		b = append(b[:len(b)-1], "],"...)
	}
	return b[:len(b)-1]
}

func (s *stream) closeChunk() {
	if s.usage {
		s.buf = append(s.buf, `,"usage":null`...)
	}
	s.buf = append(s.buf, "}\n\n"...)
}

// flush sends what was gathered. A client that takes nothing for
// Options.WriteTimeout counts as gone.
func (s *stream) flush() error {
	s.last = time.Now()
	// A deadline may be unsupported (a test recorder): then nothing blocks.
	_ = s.rc.SetWriteDeadline(s.last.Add(s.opts.WriteTimeout))
	_, err := s.w.Write(s.buf)
	s.buf = s.buf[:0]
	if err != nil {
		return err
	}
	return s.rc.Flush()
}

// heartbeat writes a comment where nothing was written for a while.
func (s *stream) heartbeat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	quiet := time.Since(s.last)
	if quiet >= s.opts.Heartbeat {
		s.header()
		s.buf = append(s.buf, ": waiting\n\n"...)
		if s.flush() != nil {
			return // Generate finds out by its context or its next token
		}
		quiet = 0
	}
	s.beat.Reset(s.opts.Heartbeat - quiet)
}
