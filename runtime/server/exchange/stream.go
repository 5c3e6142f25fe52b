package exchange

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"sandwich/runtime/api"
	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/jsontext"
)

// Stream is the connection that an answer is written to, for writers of all APIs: server-sent
// events or one object. Nothing is written before the first token, so that errors still have their
// status. If the first token takes long, keep-alive messages keep proxies and clients from timing
// out. Writers hold Mu while they use Buf, SendHeader, Flush and Stop.
type Stream struct {
	*Answer
	W              http.ResponseWriter
	rc             *http.ResponseController
	interval       time.Duration // interval of keep-alive messages
	ContentType    string        // Content-Type of a stream
	ErrorPrefix    string        // prefix of an error's JSON
	ErrorSuffix    string        // suffix of an error's JSON
	KeepAlive      func()        // appends a keep-alive message to Buf; called with Mu held
	ReportProgress bool          // report every progress
	Began          time.Time

	Mu             sync.Mutex // guards the rest; the heartbeat writes concurrently with Generate
	Buf            []byte
	opened         bool // the header was written
	over           bool
	soon           bool         // the next heartbeat sends the header
	PromptProgress api.Progress // progress of the prompt
	loading        string       // comment while the model loads, else ""
	last           time.Time
	beat           *time.Timer
}

// NewStream returns the stream of an answer.
func NewStream(a *Answer, w http.ResponseWriter, heartbeat time.Duration) *Stream {
	s := &Stream{Answer: a, W: w, rc: http.NewResponseController(w), interval: heartbeat,
		ContentType: "text/event-stream",
		ErrorPrefix: "data: ", ErrorSuffix: "\n\n", Began: time.Now(), last: time.Now()}
	s.KeepAlive = s.Comment
	const never = 1 << 62
	s.beat = time.AfterFunc(never, s.heartbeat)
	return s
}

// Start starts the heartbeat. The writer must have set KeepAlive before.
func (s *Stream) Start() {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if !s.over {
		s.beat.Reset(s.interval)
	}
}

// Queued sets the queue headers unless the header was sent. If the first token is far away, the
// header is sent after a tenth of the heartbeat; by then a refusal would have been sent with its
// status.
func (s *Stream) Queued(q api.Queue) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.loading = ""
	if s.opened {
		return
	}
	setQueue(s.W.Header(), q)
	if !s.over && q.First >= s.interval/longPrompt {
		s.soon = true
		s.beat.Reset(s.interval / longPrompt)
	}
}

// longPrompt determines how often progress is reported: every heartbeat/longPrompt, and
// only for prompts that take longer than that.
const longPrompt = 10

// Progress reports the progress of the prompt on an open stream.
func (s *Stream) Progress(p api.Progress) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.PromptProgress = p
	if s.over || !s.ReportProgress && (!s.opened || time.Since(s.last) < s.interval/longPrompt) {
		return
	}
	s.KeepAlive()
	s.SendHeader()
	_ = s.Flush() // Generate notices by its context or its next token
}

// Loading reports the progress of loading the model, from 0 to 1, on a stream: as a comment in
// server-sent events, else as a keep-alive message. It sends nothing before a tenth of the
// heartbeat, so that errors that occur at once have their status.
func (s *Stream) Loading(share float64) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.loading = fmt.Sprintf(": loading the model, %.0f %%\n\n", 100*share)
	if s.over || time.Since(s.last) < s.interval/longPrompt {
		return
	}
	if s.ContentType == "text/event-stream" {
		s.Comment()
	} else {
		s.KeepAlive()
	}
	s.SendHeader()
	_ = s.Flush() // the caller notices by its context
}

// AppendProgress appends the progress of the prompt in llama-server's format.
func AppendProgress(b []byte, p api.Progress) []byte {
	b = jsontext.AppendInt(append(b, `"prompt_progress":{"total":`...), p.Total)
	b = jsontext.AppendInt(append(b, `,"cache":`...), p.Cached)
	b = jsontext.AppendInt(append(b, `,"processed":`...), p.Done)
	return append(jsontext.AppendInt(append(b, `,"time_ms":`...), int(p.Took.Milliseconds())), '}')
}

// Fail ends the stream with an error, or sends it as the response if nothing was written yet. It
// returns the status for the metrics.
func (s *Stream) Fail(e *apierr.Error) int {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Stop()
	if !s.opened {
		e.Write(s.W)
		return e.Status
	}
	e.Record(s.W)
	s.Buf = append(append(append(s.Buf, s.ErrorPrefix...), e.BodyFor(s.W)...), s.ErrorSuffix...)
	s.Flush()
	return e.Status
}

// Ended ignores the end of a choice, for writers with one choice.
func (s *Stream) Ended(int, *api.Result) {}

// Close stops the heartbeat.
func (s *Stream) Close() {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Stop()
}

// Stop stops the heartbeat. The caller holds Mu.
func (s *Stream) Stop() {
	s.over = true
	s.beat.Stop()
}

// SendHeader sends the header of a stream, unless it was sent. The caller holds Mu.
func (s *Stream) SendHeader() {
	if s.opened {
		return
	}
	s.opened = true
	h := s.W.Header()
	h.Set("Content-Type", s.ContentType)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	s.W.WriteHeader(http.StatusOK)
}

// Flush sends Buf and empties it. It fails if the client does not read for the write timeout. The
// caller holds Mu.
func (s *Stream) Flush() error {
	s.last = time.Now()
	_, err := s.W.Write(jsontext.EscapeSeparators(s.Buf))
	s.Buf = s.Buf[:0]
	if err != nil {
		return err
	}
	return s.rc.Flush()
}

// Comment appends a comment to Buf, which readers of events ignore.
func (s *Stream) Comment() { s.Buf = append(s.Buf, cmp.Or(s.loading, ": waiting\n\n")...) }

// heartbeat sends a keep-alive message if nothing was sent for a while.
func (s *Stream) heartbeat() {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.over {
		return
	}
	quiet := time.Since(s.last)
	if quiet >= s.interval || s.soon && !s.opened {
		s.SendHeader()
		s.KeepAlive()
		if s.Flush() != nil {
			return // Generate notices by its context or its next token
		}
		quiet = 0
	}
	s.beat.Reset(s.interval - quiet)
}

// Answer holds the fields that all objects of one answer share.
type Answer struct {
	ID      string
	Model   string
	Created int64
	Chat    bool
}

// NewAnswer returns the fields of a new answer with a random id.
func NewAnswer(model string, chat bool) *Answer {
	prefix := "cmpl-"
	if chat {
		prefix = "chatcmpl-"
	}
	return &Answer{ID: prefix + rand.Text(), Model: model, Created: time.Now().Unix(), Chat: chat}
}

// AppendHead appends the fields before "choices".
func (a *Answer) AppendHead(b []byte, object string) []byte {
	b = jsontext.AppendString(append(b, `{"id":`...), a.ID)
	b = jsontext.AppendString(append(b, `,"object":`...), object)
	b = strconv.AppendInt(append(b, `,"created":`...), a.Created, 10)
	return jsontext.AppendString(append(b, `,"model":`...), a.Model)
}
