package plans

import (
	"errors"
	"fmt"
)

// Errors of this package, for errors.Is. ExitCode maps them to the exit codes of DESIGN.md section
// 5.
var (
	// ErrDamaged reports a bundle that cannot be read, that was changed after it was written, or
	// whose content is invalid. Exit code 2.
	ErrDamaged = errors.New("damaged plan")
	// ErrForeignHost reports a plan that was made for another machine or that needs PUs which this
	// process may not use. Exit code 4.
	ErrForeignHost = errors.New("plan for another host")
	// ErrForeignModel reports a plan for a model of another shape. Exit code 4.
	ErrForeignModel = errors.New("plan for another model")
	// ErrISA reports a plan that needs instructions which this CPU lacks. Exit code 4.
	ErrISA = errors.New("plan for another instruction set")
)

// ExitCode returns the exit code of a command that failed with err: 0 for nil, 2 for ErrDamaged and
// ErrSignature, 4 for a plan that does not fit the host or model, 1 otherwise.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, ErrDamaged), errors.Is(err, ErrSignature):
		return 2
	case errors.Is(err, ErrForeignHost), errors.Is(err, ErrForeignModel), errors.Is(err, ErrISA):
		return 4
	}
	return 1
}

// foreignHost returns an ErrForeignHost with a message.
func foreignHost(format string, a ...any) error {
	return fmt.Errorf("%w: %s", ErrForeignHost, fmt.Sprintf(format, a...))
}

// ErrSignature reports that the required key has not signed the bundle. Exit code 2.
var ErrSignature = errors.New("plan is not signed by that key")
