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
)

// detachedBytes bounds what waits for the reader of standard output, or of standard error.
const detachedBytes = 256 << 10

// Standard output and standard error after Detach; nil before.
var stdout, stderr atomic.Pointer[asynclog.Writer]

// Detach makes the process independent of who reads its output: a write to standard output or
// standard error never waits, and goes on without effect where the reader is gone. Lines of
// standard error that are not taken in time are dropped and counted. The standard logger writes
// there, too.
func Detach() {
	// A write to a closed pipe of one of the two ends a Go program, unless it listens to the
	// signal. Listening rather than ignoring, because child processes would inherit the latter.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	stdout.Store(asynclog.New(os.Stdout, detachedBytes))
	stderr.Store(asynclog.New(os.Stderr, detachedBytes))
	OnDrop(func(lines int64) { Notice("warning: the log lost " + Plural(int(lines), "line")) })
	log.SetOutput(Stderr())
}

// Stderr returns the writer of messages and logs.
func Stderr() io.Writer {
	if w := stderr.Load(); w != nil {
		return w
	}
	return os.Stderr
}

// OnDrop sets, after Detach, how dropped lines are reported once lines are written again.
func OnDrop(report func(lines int64)) {
	if w := stderr.Load(); w != nil {
		w.OnDrop(report)
	}
}

// DroppedLines returns how many messages and log lines were dropped.
func DroppedLines() int64 {
	if w := stderr.Load(); w != nil {
		return w.Dropped()
	}
	return 0
}

// FlushStderr gives the reader of standard error a bounded time to take what Detach left waiting.
func FlushStderr() {
	if w := stderr.Load(); w != nil {
		w.Flush()
	}
}

// Stdout is standard output, also after Detach.
var Stdout io.Writer = output{}

type output struct{}

func (output) Write(p []byte) (int, error) {
	if w := stdout.Load(); w != nil {
		return w.Write(p)
	}
	return os.Stdout.Write(p)
}

// FlushStdout gives the reader of standard output a bounded time to take what Detach left waiting.
// It returns the first error since Detach, unless that is a reader that went away.
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
