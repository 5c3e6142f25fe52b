package root

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"sandwich/cmd/sandwich/internal/cli/exit"
	"sandwich/runtime/mem"
)

// TestExplainLimit names the limit behind an error of the system, keeps its exit code, and leaves
// other errors alone.
func TestExplainLimit(t *testing.T) {
	path := &fs.PathError{Op: "open", Path: "x", Err: syscall.EMFILE}
	for _, c := range []struct {
		err  error
		code int
		want string // "": unchanged
	}{
		{fmt.Errorf("accept: %w", syscall.EMFILE), exit.Failed, "ulimit -n"},
		{path, exit.Input, "ulimit -n"},
		{exit.Usage(syscall.ENOSPC), exit.Input, "free some space"},
		{fmt.Errorf("%w (%w)", mem.ErrNoMemory, syscall.ENOMEM), exit.Failed, ""},
		{errors.New("too many open files"), exit.Failed, ""},
	} {
		got := explainLimit(c.err)
		if c.want == "" && !errors.Is(got, c.err) || !strings.Contains(got.Error(), c.want) {
			t.Errorf("%v became %v, want %q", c.err, got, c.want)
		}
		if exit.Code(got) != c.code {
			t.Errorf("%v: exit code %d, want %d", c.err, exit.Code(got), c.code)
		}
	}
}
