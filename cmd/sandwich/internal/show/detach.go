package show

import (
	"errors"
	"io"
	"log"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"sandwich/cmd/sandwich/internal/asynclog"
	"sandwich/internal/message"
)

// detachedBytes limits the bytes that wait for the reader of standard output, and of standard
// error.
const detachedBytes = 256 << 10

// Standard output and standard error after Detach; nil before.
var stdout, stderr atomic.Pointer[asynclog.Writer]

// Detach makes the process independent of the readers of its output. Afterwards writes to standard
// output and standard error never block, and have no effect if the reader is gone. Lines of
// standard error that the reader does not take in time are dropped and counted. The standard
// logger uses the same standard error.
func Detach() {
	// Without a handler, SIGPIPE ends a Go program that writes to a closed stdout or stderr. The
	// signal is handled and not ignored, because child processes would inherit that it is ignored.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	stdout.Store(asynclog.New(os.Stdout, detachedBytes))
	stderr.Store(asynclog.New(os.Stderr, detachedBytes))
	OnDrop(func(lines int64) { Notice("warning: the log lost " + message.Plural(int(lines), "line")) })
	log.SetOutput(Stderr())
}

// Stderr returns the writer of messages and logs.
func Stderr() io.Writer {
	if w := stderr.Load(); w != nil {
		return w
	}
	return os.Stderr
}

// OnDrop sets the function that is called with the number of dropped lines when lines can be
// written again. It has an effect only after Detach.
func OnDrop(report func(lines int64)) {
	if w := stderr.Load(); w != nil {
		w.OnDrop(report)
	}
}

// DroppedLines returns the number of messages and log lines that were dropped.
func DroppedLines() int64 {
	if w := stderr.Load(); w != nil {
		return w.Dropped()
	}
	return 0
}

// FlushStderr waits, for a bounded time, until standard error has taken the lines that Detach
// queued.
func FlushStderr() {
	if w := stderr.Load(); w != nil {
		w.Flush()
	}
}

// Stdout writes to standard output, before and after Detach.
var Stdout io.Writer = output{}

type output struct{}

func (output) Write(p []byte) (int, error) {
	if w := stdout.Load(); w != nil {
		return w.Write(p)
	}
	return os.Stdout.Write(p)
}

// FlushStdout waits, for a bounded time, until standard output has taken the bytes that Detach
// queued. It returns the first write error since Detach, except that of a reader that closed the
// pipe.
func FlushStdout() error {
	w := stdout.Load()
	if w == nil {
		return nil
	}
	w.Flush()
	if err := w.Err(); !errors.Is(err, syscall.EPIPE) {
		return err
	}
	return nil
}
