package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"sandwich/cmd/sandwich/internal/models/disk"
)

// spanChunks is the number of chunks that one request asks for.
const spanChunks = 16

// runWorkers downloads all missing chunks.
func (d *download) runWorkers(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	for range d.Connections {
		group.Go(func() {
			for ctx.Err() == nil {
				first, n := d.journal.take(spanChunks)
				if n == 0 {
					return
				}
				if err := d.span(ctx, first, n); err != nil {
					cancel(err)
				}
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// span downloads n chunks from the given one on.
func (d *download) span(ctx context.Context, first, n int) error {
	end := first + n
	return d.retry(ctx, d.Attempts, func(ctx context.Context) (bool, error) {
		before := first
		err := d.trySpan(ctx, &first, end)
		return first > before, err
	})
}

// trySpan downloads the chunks from *next to end by one request. It advances *next past each stored
// chunk.
func (d *download) trySpan(ctx context.Context, next *int, end int) error {
	first := int64(*next) * d.journal.Chunk
	resp, stop, err := d.request(ctx, first, min(int64(end)*d.journal.Chunk, d.file.Size)-1)
	if err != nil {
		return err
	}
	defer stop()
	if resp.StatusCode != http.StatusPartialContent {
		if d.validator.Swap(nil) != nil && d.file.SHA256 == "" {
			return errChanged
		}
		return errWhole // with a checksum a validator is not needed; servers of one host may have different ones
	}
	size, err := contentRange(resp, first)
	if err == nil && (size != d.file.Size || d.replaced(resp)) {
		err = errChanged
	}
	for err == nil && *next < end {
		if err = d.storeChunk(*next, resp.Body); err == nil {
			*next++
		}
	}
	return err
}

// replaced reports whether an answer is part of another version of the file, from a server that
// ignores If-Range. With a checksum it does not matter: the complete file is checked.
func (d *download) replaced(resp *http.Response) bool {
	now := validatorOf(resp)
	return d.file.SHA256 == "" && now != "" && d.journal.Validator != "" && now != d.journal.Validator
}

// errWhole reports a server that answers a request for a part with the whole file.
var errWhole = errors.New("the server sends the whole file instead of a part")

// storeChunk copies a chunk from a body to the disk.
func (d *download) storeChunk(chunk int, body io.Reader) error {
	want := d.journal.length(chunk)
	w := &placed{d, int64(chunk) * d.journal.Chunk}
	n, err := io.CopyN(w, body, want)
	if err == nil {
		err = disk.Flush(d.part)
	}
	if err == nil {
		err = disk.Error(d.journal.store(chunk))
	}
	if err != nil {
		d.done.Add(-n) // the bytes will be downloaded again
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
	}
	return err
}

// placed writes to the file from an offset on and counts the bytes.
type placed struct {
	*download
	at int64
}

func (w *placed) Write(p []byte) (int, error) {
	n, err := w.part.WriteAt(p, w.at)
	w.at += int64(n)
	w.Progress(w.done.Add(int64(n)), w.file.Size)
	return n, disk.Error(err)
}

// getWhole downloads the file by one request, for servers that do not send parts. An interrupted
// download starts again.
func (d *download) getWhole(ctx context.Context) error {
	if err := Discard(d.base); err != nil {
		return err
	}
	if err := d.openPart(); err != nil {
		return err
	}
	return d.retry(ctx, d.Attempts, func(ctx context.Context) (bool, error) {
		d.done.Store(0)
		if err := d.part.Truncate(0); err != nil {
			return false, disk.Error(err)
		}
		resp, stop, err := d.request(ctx, 0, -1)
		if err != nil {
			return false, err
		}
		defer stop()
		body := io.Reader(resp.Body)
		if d.file.Size >= 0 {
			body = io.LimitReader(body, d.file.Size+1)
		}
		n, err := io.Copy(&placed{d, 0}, body)
		if err == nil && d.file.Size >= 0 && n != d.file.Size {
			err = fmt.Errorf("%w: the server sent %d bytes, expected are %d", ErrContent, n, d.file.Size)
		}
		return false, err
	})
}

// check reads the complete file and compares its checksum.
func (d *download) check(ctx context.Context) (Result, error) {
	if err := d.part.Sync(); err != nil {
		return Result{}, disk.Error(err)
	}
	sum := sha256.New()
	n, err := io.Copy(sum, &interruptible{ctx, io.NewSectionReader(d.part, 0, 1<<62)})
	if err != nil {
		return Result{}, err
	}
	r := Result{Size: n, SHA256: hex.EncodeToString(sum.Sum(nil))}
	if d.file.SHA256 != "" && r.SHA256 != d.file.SHA256 {
		return r, fmt.Errorf("%w: the file has %s, expected is %s", ErrChecksum, r.SHA256, d.file.SHA256)
	}
	return r, nil
}

// interruptible is a reader that ends with its context.
type interruptible struct {
	ctx context.Context
	io.Reader
}

func (r *interruptible) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.Reader.Read(p)
}
