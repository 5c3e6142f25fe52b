package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sandwich/cmd/sandwich/internal/models/disk"
	"sandwich/cmd/sandwich/internal/models/refusal"
)

// StatusError is the refusal of a request by a server.
type StatusError struct {
	Code       int
	Host       string
	Reason     string        // that the server states, not trusted; "": none
	wait       time.Duration // after which the server accepts the request again; 0: unknown
	redirected bool          // to Host, by another one
}

func (e *StatusError) Error() string {
	text := fmt.Sprintf("%s answered %d %s", e.Host, e.Code, http.StatusText(e.Code))
	if e.Reason != "" {
		text += fmt.Sprintf(" and says %q", e.Reason)
	}
	switch {
	case e.Denied():
		return text + "; the file needs credentials"
	case e.Code == http.StatusNotFound, e.Code == http.StatusGone:
		return text + "; check the name"
	case e.wait > refusal.LongestWait:
		return text + fmt.Sprintf("; it accepts requests again in %s", e.wait.Round(time.Second))
	}
	return text
}

// Denied reports whether the server of the address requires credentials, or other ones.
func (e *StatusError) Denied() bool {
	return e.Code == http.StatusUnauthorized || e.Code == http.StatusForbidden
}

// passing reports whether the same request may succeed later. A host to which a server redirects
// refuses requests whose signature has expired; a new request gets a new one.
func (e *StatusError) passing() bool {
	switch e.Code {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden:
		return e.redirected
	case http.StatusRequestTimeout:
		return true
	case http.StatusTooManyRequests:
		return e.wait <= refusal.LongestWait
	}
	return e.Code >= 500 && e.wait <= refusal.LongestWait
}

// head describes a file as the server does.
type head struct {
	size      int64 // negative: unknown
	validator string
	ranges    bool // the server sends parts of the file
}

// probe asks for the first bytes of the file and returns what the server says about the whole file.
func (d *download) probe(ctx context.Context) (h head, err error) {
	err = d.retry(ctx, min(d.Attempts, probeAttempts), func(ctx context.Context) (bool, error) {
		h, err = d.tryProbe(ctx)
		return false, err
	})
	return h, err
}

const (
	probeBytes    = 16 // that a probe asks for
	probeAttempts = 3
)

func (d *download) tryProbe(ctx context.Context) (head, error) {
	resp, stop, err := d.request(ctx, 0, probeBytes-1)
	if err != nil {
		return head{}, err
	}
	defer stop()
	h := head{size: resp.ContentLength, validator: validatorOf(resp)}
	if resp.StatusCode == http.StatusPartialContent {
		if h.size, err = contentRange(resp, 0); err != nil {
			return h, err
		}
		h.ranges = true
	}
	if d.file.Size >= 0 && h.size >= 0 && h.size != d.file.Size {
		return h, fmt.Errorf("%w: the server has %d bytes, expected are %d", ErrContent, h.size, d.file.Size)
	}
	first, err := io.ReadAll(io.LimitReader(resp.Body, int64(len(d.Magic))))
	if err == nil && string(first) != d.Magic {
		err = fmt.Errorf("%w: the file begins with %q, expected is %q", ErrContent, first, d.Magic)
	}
	return h, err
}

// request asks for the bytes first to last of the file; last -1 asks for the whole file. stop must
// be called when the body was read.
func (d *download) request(ctx context.Context, first, last int64) (resp *http.Response, stop func(), err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop = func() { cancel(nil) }
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.file.URL, http.NoBody)
	if err != nil {
		stop()
		return nil, nil, err
	}
	req.Header.Set("Accept-Encoding", "identity")
	if last >= 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", first, last))
		if v := d.validator.Load(); v != nil {
			req.Header.Set("If-Range", *v)
		}
	}
	idle := time.AfterFunc(d.Stall, func() { cancel(errStalled) })
	resp, err = d.client.Do(req)
	if err != nil {
		idle.Stop()
		err = causeOf(ctx, err)
		stop()
		return nil, nil, err
	}
	body := resp.Body
	stop = func() { idle.Stop(); cancel(nil); body.Close() }
	if err := d.checkResponse(resp); err != nil {
		stop()
		return nil, nil, err
	}
	resp.Body = &watched{body, idle, d.Stall, ctx}
	return resp, stop, nil
}

// errStalled is the cause of a request that was ended because the server sent nothing.
var errStalled = errors.New("the server sends nothing")

// causeOf returns the reason why a request failed.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// watched is a body whose request ends if no byte arrives for a time.
type watched struct {
	io.ReadCloser
	idle  *time.Timer
	stall time.Duration
	ctx   context.Context
}

func (w *watched) Read(p []byte) (int, error) {
	w.idle.Reset(w.stall)
	n, err := w.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = causeOf(w.ctx, err)
	}
	return n, err
}

// checkResponse rejects an answer that is not part of a file.
func (d *download) checkResponse(resp *http.Response) error {
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusPartialContent {
		host := resp.Request.URL.Host
		if resp.StatusCode == http.StatusRequestedRangeNotSatisfiable {
			return errChanged
		}
		return &StatusError{resp.StatusCode, host, refusal.Reason(resp), refusal.Wait(resp, time.Now()),
			resp.Request.URL.String() != d.file.URL}
	}
	if encoding := resp.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return fmt.Errorf("%w: the server encodes the file as %.40q", ErrContent, encoding)
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "text/html" {
		return fmt.Errorf("%w: %s sends a web page instead of the file", ErrContent, resp.Request.URL.Host)
	}
	return nil
}

// validatorOf returns the strong entity tag of an answer, else its time of modification, "" if it
// has neither.
func validatorOf(resp *http.Response) string {
	etag := resp.Header.Get("ETag")
	if strings.HasPrefix(etag, `"`) && strings.HasSuffix(etag, `"`) && len(etag) > 2 && len(etag) < 300 {
		return etag
	}
	if modified := resp.Header.Get("Last-Modified"); len(modified) < 100 {
		return modified
	}
	return ""
}

// contentRange checks that an answer begins at a byte and returns the size of the whole file.
func contentRange(resp *http.Response, first int64) (size int64, err error) {
	text := resp.Header.Get("Content-Range")
	span, total, _ := strings.Cut(strings.TrimPrefix(text, "bytes "), "/")
	from, _, _ := strings.Cut(span, "-")
	at, err1 := strconv.ParseInt(from, 10, 64)
	size, err2 := strconv.ParseInt(total, 10, 64)
	if err1 != nil || err2 != nil || at != first || size <= first {
		return 0, fmt.Errorf("%w: the server sends the range %.80q", ErrContent, text)
	}
	return size, nil
}

// retry calls fn until it succeeds, fails for good, or fails as often as allowed without progress,
// which fn reports.
func (d *download) retry(ctx context.Context, attempts int,
	fn func(ctx context.Context) (progress bool, err error)) error {
	for attempt := 1; ; attempt++ {
		progress, err := fn(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !passing(err):
			return err
		case progress:
			attempt = 1
		case attempt >= attempts:
			return fmt.Errorf("%w; %d attempts failed, and a later download continues", err, attempt)
		}
		if err := d.Wait(ctx, pause(attempt, err)); err != nil {
			return err
		}
	}
}

// passing reports whether a request that failed is worth repeating.
func passing(err error) bool {
	var status *StatusError
	var final interface{ Final() bool }
	var certificate *tls.CertificateVerificationError
	var dns *net.DNSError
	switch {
	case errors.As(err, &certificate), errors.As(err, &dns) && dns.IsNotFound:
		return false
	case errors.As(err, &status):
		return status.passing()
	case errors.As(err, &final):
		return !final.Final()
	case errors.Is(err, ErrContent), errors.Is(err, errChanged), errors.Is(err, disk.ErrDisk):
		return false
	}
	return true
}
