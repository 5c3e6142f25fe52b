// Package fetch downloads files over HTTP so that a download which was interrupted at any moment
// continues where it stopped, and so that a file is complete only if its size and checksum are
// right.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"sandwich/cmd/sandwich/internal/models/disk"
)

// Doer sends requests, as [http.Client] does.
type Doer interface {
	Do(r *http.Request) (*http.Response, error)
}

// File is a file on a server.
type File struct {
	Name   string // for messages
	URL    string
	Size   int64  // in bytes; negative: unknown
	SHA256 string // in hexadecimal digits; "": unknown
	Label  string // stored with an unfinished download, for [Unfinished]
}

// Options configures a download. The zero value uses defaults.
type Options struct {
	Connections int           // parallel requests; 0: 4
	Chunk       int64         // bytes after which progress is stored; 0: 8 MiB
	Magic       string        // first bytes that the file must have; "": any
	Stall       time.Duration // a connection that sends nothing for this time is closed; 0: 60 s
	Attempts    int           // failures of a request, without progress between them, that end the download; 0: 6

	Wait func(ctx context.Context, d time.Duration) error // pauses before a request is repeated; nil: [Sleep]
	// Progress may be called concurrently; total is negative if unknown.
	Progress func(done, total int64)
}

// Result describes a complete file.
type Result struct {
	Size   int64
	SHA256 string
}

// Errors that a server causes and that a repeated request does not correct.
var (
	// ErrChecksum is wrapped if the content of a file is not what its reference promises.
	ErrChecksum = errors.New("wrong checksum")
	// ErrContent is wrapped if a server sends something else than the file.
	ErrContent = errors.New("unexpected content")
)

// errChanged reports that the file on the server is not the one of which parts are stored.
var errChanged = errors.New("the file changed on the server")

// Get downloads a file to base.part and returns its size and checksum. The progress is stored in
// base.journal; a later call with the same base continues. After an error whose cause may pass, the
// files stay. Only one process may download to base at a time. When Get returns without an error,
// the caller moves base.part and calls [Discard].
func Get(ctx context.Context, client Doer, f File, base string, o Options) (Result, error) {
	o = o.withDefaults()
	for again := false; ; again = true {
		d := &download{Options: o, client: client, file: f, base: base}
		r, resumed, err := d.get(ctx)
		if err == nil {
			return r, nil
		}
		if errors.Is(err, errChanged) || errors.Is(err, ErrChecksum) {
			if discardErr := Discard(base); discardErr != nil {
				return Result{}, discardErr
			}
			// The parts of an earlier run may be of another version of the file.
			if !again && (resumed || errors.Is(err, errChanged)) {
				continue
			}
		}
		return Result{}, fmt.Errorf("%s: %w", f.Name, err)
	}
}

func (o Options) withDefaults() Options {
	if o.Connections == 0 {
		o.Connections = 4
	}
	if o.Chunk == 0 {
		o.Chunk = 8 << 20
	}
	if o.Stall == 0 {
		o.Stall = time.Minute
	}
	if o.Attempts == 0 {
		o.Attempts = 6
	}
	if o.Wait == nil {
		o.Wait = Sleep
	}
	if o.Progress == nil {
		o.Progress = func(int64, int64) {}
	}
	return o
}

// longestPause limits the pause before a request is repeated, unless the server asks for a longer
// one.
const longestPause = time.Minute

// pause returns the time before an attempt is repeated: 1 s after the first one, twice as long
// after each further one, and at least the time that the server asks for.
func pause(attempt int, err error) time.Duration {
	d := min(longestPause, time.Second<<min(attempt-1, 10))
	var status *StatusError
	if errors.As(err, &status) {
		d = max(d, status.wait)
	}
	return d
}

// Sleep waits for a time. It returns the cause of ctx if that ends before.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// download is one run of a download.
type download struct {
	Options
	client    Doer
	file      File
	base      string
	validator atomic.Pointer[string] // sent with If-Range; nil for none
	part      *os.File
	journal   *journal
	done      atomic.Int64 // bytes
}

func partPath(base string) string    { return base + ".part" }
func journalPath(base string) string { return base + ".journal" }

// Discard removes the files of a download. Missing files are not an error.
func Discard(base string) error {
	var all error
	for _, path := range []string{journalPath(base), partPath(base)} {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			all = errors.Join(all, err)
		}
	}
	return all
}

// PartPath returns the path of the complete file after [Get].
func PartPath(base string) string { return partPath(base) }

// get downloads the file. resumed reports whether an earlier run stored parts of it.
func (d *download) get(ctx context.Context) (r Result, resumed bool, err error) {
	head, err := d.probe(ctx)
	if err != nil {
		return r, false, err
	}
	if head.ranges {
		d.file.Size = head.size
		resumed, err = d.getRanges(ctx, head.validator)
	} else {
		err = d.getWhole(ctx)
	}
	if d.part != nil {
		defer d.part.Close()
	}
	if err != nil {
		return r, resumed, err
	}
	r, err = d.check(ctx)
	return r, resumed, err
}

// openPart opens the file of the earlier run, or a new one.
func (d *download) openPart() (err error) {
	d.part, err = os.OpenFile(partPath(d.base), os.O_RDWR|os.O_CREATE, 0o600)
	return err
}

// getRanges downloads the missing chunks of the file by parallel requests.
func (d *download) getRanges(ctx context.Context, validator string) (resumed bool, err error) {
	if validator != "" {
		d.validator.Store(&validator)
	}
	want := header{Version: journalVersion, Label: d.file.Label, Size: d.file.Size, SHA256: d.file.SHA256,
		Validator: validator, Chunk: d.Chunk}
	if d.journal, resumed, err = openJournal(d.base, want); err != nil {
		return resumed, err
	}
	defer d.journal.close()
	if err := d.openPart(); err != nil {
		return resumed, err
	}
	if err := disk.Reserve(d.part, d.file.Size); err != nil {
		return resumed, err
	}
	d.done.Store(d.journal.bytes())
	d.Progress(d.done.Load(), d.file.Size)
	return resumed, d.runWorkers(ctx)
}
