package generation

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"unicode/utf8"

	"sandwich/runtime/server/apierr"
	"sandwich/runtime/server/conntable"
)

// budget bounds the total size in bytes of all request bodies in memory.
type budget struct {
	left atomic.Int64
}

// take reserves n bytes and reports whether they were available.
func (b *budget) take(n int64) bool {
	if b.left.Add(-n) >= 0 {
		return true
	}
	b.left.Add(n)
	return false
}

// readBody reads the whole body. It accepts up to Limits.MaxBody bytes after decompression, takes
// memory from the budget as bytes arrive, and observes the deadline of the connection. The caller
// must call release when it no longer uses body. Reading to the end also lets net/http detect a
// client that closes the connection.
func (s *Runner) readBody(w http.ResponseWriter, r *http.Request) (body []byte, release func(), fail *apierr.Error) {
	if r.ContentLength > s.Limits.MaxBody {
		w.Header().Set("Connection", "close")
		return nil, nil, s.tooLarge()
	}
	src := io.Reader(http.MaxBytesReader(w, r.Body, s.Limits.MaxBody))
	if coding, _ := ContentCoding(r.Header); coding == CodingGzip {
		src = &inflated{from: src, max: s.Limits.MaxBody, left: s.Limits.MaxBody}
	}
	var taken int64
	release = func() { s.bodies.left.Add(taken) }
	var buf bytes.Buffer
	const first, block = 4 << 10, 32 << 10 // small first step: bodies that never arrive take little memory
	for step := int64(first); ; step = block - taken%block {
		if !s.bodies.take(step) {
			release()
			w.Header().Set("Connection", "close")
			e := apierr.New(http.StatusServiceUnavailable, apierr.TypeLimit, "busy",
				"too many large requests at once; "+
					"try again later")
			e.RetryAfter = 1
			return nil, nil, e
		}
		taken += step
		if _, err := io.CopyN(&buf, src, step); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			release()
			return nil, nil, s.unreadable(conntable.Of(r.Context()), err)
		}
	}
	conntable.Of(r.Context()).Received()
	body = bytes.TrimPrefix(buf.Bytes(), byteOrderMark)
	if !utf8.Valid(body) {
		release()
		return nil, nil, apierr.New(http.StatusBadRequest, apierr.TypeInvalid, "", "the body is not valid UTF-8")
	}
	return body, release, nil
}

// byteOrderMark may precede a text in UTF-8.
var byteOrderMark = []byte("\ufeff")

// tooLarge returns the error for a body above Limits.MaxBody.
func (s *Runner) tooLarge() *apierr.Error {
	return apierr.New(http.StatusRequestEntityTooLarge, apierr.TypeInvalid, "body_too_large",
		"the body is larger than the %d bytes accepted", s.Limits.MaxBody)
}

// unreadable returns the error for a body that could not be read completely.
func (s *Runner) unreadable(c *conntable.Conn, err error) *apierr.Error {
	var over *http.MaxBytesError
	var corrupt *gzipError
	switch {
	case c.Displaced():
		return apierr.New(apierr.StatusDisplaced, apierr.TypeLimit, "too_many_connections",
			"the connection was closed to make room for another one")
	case errors.As(err, &over):
		return s.tooLarge()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return apierr.New(http.StatusRequestTimeout, apierr.TypeInvalid, "",
			"the body did not arrive within %v plus one second for each %d bytes",
			s.Limits.BodyTimeout, conntable.MinBodyRate)
	case errors.As(err, &corrupt):
		return apierr.New(http.StatusBadRequest, apierr.TypeInvalid, "", "%v", corrupt)
	}
	return apierr.New(http.StatusBadRequest, apierr.TypeInvalid, "", "the body cannot be read: %v", err)
}

// maxDiscard bounds the unread bytes of a body that are read and discarded to keep the connection.
const maxDiscard = 256 << 10

// EndBody sends the answer to a request whose body was not read completely and discards the rest of
// the body. late states that reading timed out, so that the answer does not wait for the rest.
func EndBody(c *conntable.Conn, w http.ResponseWriter, r *http.Request, late bool) {
	if !c.Receives() {
		return
	}
	if !late {
		c.Discard()
		if r.Header.Get("Expect") != "" {
			return // the client waits for the answer before it sends the body
		}
		if !r.Close && r.ContentLength <= maxDiscard {
			if _, err := io.CopyN(io.Discard, r.Body, maxDiscard); err == io.EOF {
				return // the connection can be reused
			}
		}
	}
	if http.NewResponseController(w).Flush() == nil {
		_ = c.CloseWrite()
	}
}
