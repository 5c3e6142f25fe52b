package main

import (
	"errors"
	"io/fs"

	"sandwich/profiles/retention"
	"sandwich/runtime/engine"
	"sandwich/runtime/gguf"
	"sandwich/runtime/session"
)

// Exit codes of all verbs.
const (
	exitOK      = 0
	exitFailed  = 1 // failed or regressed
	exitInput   = 2 // input cannot be used
	exitNoisy   = 3 // measurement too noisy to decide
	exitForeign = 4 // the plan does not fit this host
)

// coded is an error with an exit code.
type coded struct {
	error
	code int
}

func (c coded) Unwrap() error { return c.error }

// usageError gives an error the exit code of unusable input, such as flags, files and models.
func usageError(err error) error { return withCode(exitInput, err) }

// errSilent marks an error that was already reported on stdout.
var errSilent = errors.New("")

// silent returns an error that sets the exit code and prints nothing.
func silent(code int) error { return coded{errSilent, code} }

// withCode gives an error an exit code; nil stays nil.
func withCode(code int, err error) error {
	if err == nil {
		return nil
	}
	return coded{err, code}
}

// exitCode returns the exit code of an error: its own, 2 for a file or model that cannot be used,
// else 1.
func exitCode(err error) int {
	var c coded
	var path *fs.PathError
	var overflow *engine.OverflowError
	var load *session.LoadError
	switch {
	case errors.As(err, &c):
		return c.code
	case errors.As(err, &load):
		return exitCode(modelError(load.Err))
	case errors.As(err, &path), errors.As(err, &overflow), errors.Is(err, gguf.ErrChanged),
		errors.Is(err, retention.ErrNotRegular):
		return exitInput
	}
	return exitFailed
}
