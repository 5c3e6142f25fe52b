package exit

import (
	"errors"
	"fmt"
	"io/fs"

	"sandwich/plans"
	"sandwich/runtime/mem"
	"sandwich/runtime/session"
)

// Model gives errors of loading their exit code: a model or plan that this program cannot run
// is an input.
func Model(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, mem.ErrNoNode) {
		return With(Foreign, &session.LoadError{Err: err})
	}
	if code := plans.ExitCode(err); code != Failed {
		return With(code, err)
	}
	return Usage(err)
}

// Plan gives a refusal of a plan its exit code and its remedy.
func Plan(err error) error {
	code := plans.ExitCode(err)
	if code == Failed && errors.Is(err, fs.ErrNotExist) {
		code = Input
	}
	switch {
	case code == OK || code == Failed:
		return err // Code recognizes files that cannot be read
	case code == Foreign:
		err = fmt.Errorf("%w; create a plan for this host and model with `sandwich tune`", err)
	case code == Input:
		err = fmt.Errorf("%w; copy it again, or create it again with `sandwich tune`", err)
	}
	return With(code, err)
}
