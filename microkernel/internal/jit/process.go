package jit

import (
	"errors"
	"log/slog"
	"sync"
)

// ours holds every generated function of the process. Functions are never freed: all kernels of a
// tuning run are a few megabytes, and a function that nobody can free is one that nobody can call
// after it was freed.
var ours arena
var sayNoExec sync.Once

// Load puts machine code into the executable memory of the process. Where the system forbids that,
// the error wraps ErrNoExec, a warning has been logged once, and the caller runs its plain-Go
// oracle instead.
func Load(codes ...[]byte) ([]Func, error) {
	fs, err := ours.Load(codes...)
	if errors.Is(err, ErrNoExec) {
		sayNoExec.Do(func() {
			slog.Warn("no executable memory: running plain-Go kernels, which are many times slower", "reason", err)
		})
	}
	return fs, err
}
