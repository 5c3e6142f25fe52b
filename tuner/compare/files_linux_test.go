package compare

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sandwich/internal/testwait"
	"sandwich/profiles/retention"
)

// TestSpecialGridFiles puts a pipe and a folder in the place of a grid: each is refused at once and
// stays.
func TestSpecialGridFiles(t *testing.T) {
	for what, open := range map[string]func(path string) error{
		"grid": func(path string) error { _, err := openGrid(path); return err },
	} {
		for kind, create := range map[string]func(path string) error{
			"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
			"folder": func(path string) error { return os.Mkdir(path, 0o700) },
		} {
			path := filepath.Join(t.TempDir(), "wisdom-host-build.jsonl")
			if err := create(path); err != nil {
				t.Fatal(err)
			}
			err := testwait.Returns(t, what, func() error { return open(path) })
			if !errors.Is(err, retention.ErrNotRegular) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s, a %s: %v", what, kind, err)
			}
			if st, err := os.Stat(path); err != nil || st.Mode().IsRegular() {
				t.Errorf("%s: the %s became %v, %v", what, kind, st, err)
			}
		}
	}
}
