// Package exit maps errors to the exit codes of the program.
package exit

import (
	"errors"
	"io/fs"

	"sandwich/profiles/retention"
	"sandwich/runtime/engine/forward"
	"sandwich/runtime/gguf"
	"sandwich/runtime/session"
)

// Exit codes of all verbs.
const (
	OK      = 0
	Failed  = 1 // failed or regressed
	Input   = 2 // input cannot be used
	Noisy   = 3 // measurement too noisy to decide
	Foreign = 4 // the plan does not fit this host
)

// coded is an error with an exit code.
type coded struct {
	error
	code int
}

func (c coded) Unwrap() error { return c.error }

// Usage gives an error the exit code of unusable input, such as flags, files and models.
func Usage(err error) error { return With(Input, err) }

// ErrSilent marks an error that was already reported on stdout.
var ErrSilent = errors.New("")

// Silent returns an error that sets the exit code and prints nothing.
func Silent(code int) error { return coded{ErrSilent, code} }

// With gives an error an exit code; nil stays nil.
func With(code int, err error) error {
	if err == nil {
		return nil
	}
	return coded{err, code}
}

// Code returns the exit code of an error: its own, 2 for a file or model that cannot be used,
// else 1.
func Code(err error) int {
	var c coded
	var path *fs.PathError
	var overflow *forward.OverflowError
	var load *session.LoadError
	switch {
	case errors.As(err, &c):
		return c.code
	case errors.As(err, &load):
		return Code(Model(load.Err))
	case errors.As(err, &path), errors.As(err, &overflow), errors.Is(err, gguf.ErrChanged),
		errors.Is(err, retention.ErrNotRegular):
		return Input
	}
	return Failed
}
