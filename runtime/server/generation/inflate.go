package generation

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
)

// CodingGzip is the only supported Content-Encoding.
const CodingGzip = "gzip"

// ContentCoding returns how a body is compressed: "" or CodingGzip. For other encodings it returns
// the header value and false.
func ContentCoding(h http.Header) (coding string, known bool) {
	sent := strings.Join(h.Values("Content-Encoding"), ", ")
	switch strings.ToLower(strings.TrimSpace(sent)) {
	case "", "identity":
		return "", true
	case CodingGzip, "x-gzip":
		return CodingGzip, true
	}
	return sent, false
}

// inflated decompresses a body. Read fails with *http.MaxBytesError if the output exceeds max
// bytes, and with *gzipError if the body is not valid gzip.
type inflated struct {
	from      io.Reader
	z         *gzip.Reader
	max, left int64
}

// gzipError reports a body that is not valid gzip despite its Content-Encoding.
type gzipError struct{ err error }

func (e *gzipError) Error() string {
	return "the body is sent with Content-Encoding: gzip and cannot be decompressed: " + e.err.Error()
}

func (r *inflated) Read(p []byte) (n int, err error) {
	if r.z == nil {
		if r.z, err = gzip.NewReader(r.from); err != nil {
			return 0, gzipFailure(err)
		}
	}
	if int64(len(p)) > r.left+1 {
		p = p[:r.left+1]
	}
	n, err = r.z.Read(p)
	if r.left -= int64(n); r.left < 0 {
		return 0, &http.MaxBytesError{Limit: r.max}
	}
	return n, gzipFailure(err)
}

// gzipFailure wraps errors of decompression. io.EOF, a body above the limit and a client that is
// too slow are returned unchanged.
func gzipFailure(err error) error {
	var over *http.MaxBytesError
	if err == nil || err == io.EOF || errors.As(err, &over) || errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return &gzipError{err}
}
