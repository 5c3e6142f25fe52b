package server

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// budget bounds the bytes of all bodies in memory at one time, whatever the
// number of clients.
type budget struct {
	left atomic.Int64
}

func (b *budget) take(n int64) bool {
	if b.left.Add(-n) >= 0 {
		return true
	}
	b.left.Add(n)
	return false
}

// readBody reads the whole body within Options.MaxBody bytes and
// the deadline that ServeHTTP has set. Memory is taken as bytes arrive, never as announced. The
// caller calls release when the bytes are no longer used. Reading to the end is
// also what lets net/http notice that the client hangs up.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) (body []byte, release func(), fail *apiError) {
	tooLarge := newError(http.StatusRequestEntityTooLarge, typeInvalid, "body_too_large",
		"the body is larger than the %d bytes accepted", s.opts.MaxBody)
	if r.ContentLength > s.opts.MaxBody {
		w.Header().Set("Connection", "close")
		return nil, nil, tooLarge
	}
	var taken int64
	release = func() { s.bodies.left.Add(taken) }
	var buf bytes.Buffer
	src := http.MaxBytesReader(w, r.Body, s.opts.MaxBody)
	for {
		const step = 32 << 10
		if !s.bodies.take(step) {
			release()
			w.Header().Set("Connection", "close")
			e := newError(http.StatusServiceUnavailable, typeLimit, "busy", "too many large requests at once; "+
				"try again later")
			e.retryAfter = 1
			return nil, nil, e
		}
		taken += step
		_, err := io.CopyN(&buf, src, step)
		if err == nil {
			continue
		}
		if errors.Is(err, io.EOF) {
			break
		}
		release()
		var over *http.MaxBytesError
		switch {
		case errors.As(err, &over):
			return nil, nil, tooLarge
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, nil, newError(http.StatusRequestTimeout, typeInvalid, "", "the body did not arrive within %v",
				s.opts.BodyTimeout)
		}
		return nil, nil, newError(http.StatusBadRequest, typeInvalid, "", "the body cannot be read: %v", err)
	}
	if !utf8.Valid(buf.Bytes()) {
		release()
		return nil, nil, newError(http.StatusBadRequest, typeInvalid, "", "the body is not valid UTF-8")
	}
	// The body is here; from now on a pause of the client is no fault.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	return buf.Bytes(), release, nil
}
