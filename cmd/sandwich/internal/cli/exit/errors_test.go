package exit

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"sandwich/plans"
)

// TestPlan checks exit codes and remedies of errors of plans. A plan that cannot be read, but is
// there, is unusable input; another plan is no remedy.
func TestPlan(t *testing.T) {
	if Plan(nil) != nil {
		t.Error("no error became one")
	}
	for _, c := range []struct {
		err    error
		code   int
		remedy string
	}{
		{&fs.PathError{Op: "read plan", Path: "x", Err: syscall.ENOENT}, Input, "copy it again"},
		{fmt.Errorf("plan.yaml: %w", fs.ErrNotExist), Input, "copy it again"},
		{plans.ErrDamaged, Input, "copy it again"},
		{plans.ErrForeignHost, Foreign, "create a plan for this host"},
		{&fs.PathError{Op: "read plan", Path: "x", Err: syscall.ELOOP}, Input, ""},
		{&fs.PathError{Op: "read plan", Path: "x", Err: syscall.EACCES}, Input, ""},
		{Usage(errors.New("no")), Input, ""},
		{errors.New("no"), Failed, ""},
	} {
		err := Plan(c.err)
		if Code(err) != c.code || !errors.Is(err, c.err) {
			t.Errorf("%v has exit code %d, want %d", err, Code(err), c.code)
		}
		if !strings.Contains(err.Error(), c.remedy) || c.remedy == "" && err.Error() != c.err.Error() {
			t.Errorf("%v, want the remedy %q", err, c.remedy)
		}
	}
}
