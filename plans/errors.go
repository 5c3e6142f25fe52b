package plans

import (
	"errors"
	"fmt"
)

// The kinds of refusal, for errors.Is. ExitCode maps them to the exit codes of DESIGN.md section 5.
var (
	// ErrDamaged: the bundle cannot be read, was changed after it was written, or holds what no
	// plan can hold. Exit 2.
	ErrDamaged = errors.New("damaged plan")
	// ErrForeignHost: the plan was made for another machine, or needs PUs that this process may not
	// use. Exit 4.
	ErrForeignHost = errors.New("plan for another host")
	// ErrForeignModel: the plan was made for a model of another shape. Exit 4.
	ErrForeignModel = errors.New("plan for another model")
	// ErrISA: the plan needs instructions that this CPU does not have. Exit 4.
	ErrISA = errors.New("plan for another instruction set")
)

// ExitCode is the exit code of a verb that failed with err: 0 for nil, 2 for ErrDamaged and
// ErrSignature, 4 for a plan that does not fit, 1 otherwise.
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

func damaged(format string, a ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, a...))
}

func foreignHost(format string, a ...any) error {
	return fmt.Errorf("%w: %s", ErrForeignHost, fmt.Sprintf(format, a...))
}
