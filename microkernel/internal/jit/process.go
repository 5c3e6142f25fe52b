package jit

import (
	"errors"
	"log/slog"
	"sync"
)

// ours holds every generated function of the process. Functions are never freed: the kernels of a
// tuning run are a few megabytes, and no caller can use a freed one.
var ours arena
var sayNoExec sync.Once

// Load puts machine code into the executable memory of the process. If the system forbids that,
// the error wraps ErrNoExec, Load has logged one warning, and the caller runs its plain-Go oracle
// instead.
func Load(codes ...[]byte) ([]Func, error) {
	fs, err := ours.Load(codes...)
	if errors.Is(err, ErrNoExec) {
		sayNoExec.Do(func() {
			slog.Warn("no executable memory: running plain-Go kernels, which are many times slower", "reason", err)
		})
	}
	return fs, err
}

// LoadOne is Load for one function.
func LoadOne(code []byte) (Func, error) {
	fs, err := Load(code)
	if err != nil {
		return Func{}, err
	}
	return fs[0], nil
}
