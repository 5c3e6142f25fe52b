package trials

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

// TestSpecialFiles puts a pipe and a folder in the place of the files of tune: each is refused at
// once and stays.
func TestSpecialFiles(t *testing.T) {
	for what, open := range map[string]func(path string) error{
		"kernel trials": func(path string) error { _, err := OpenWisdom(path); return err },
		"forget":        func(path string) error { _, err := Forget(filepath.Dir(path)); return err },
		"journal":       func(path string) error { _, err := OpenJournal(path, testKey, false); return err },
		"resume":        func(path string) error { _, err := OpenJournal(path, testKey, true); return err },
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

// TestLargeJournal checks that a file that no run can have written is not read.
func TestLargeJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.journal")
	if err := os.WriteFile(path, []byte(`{"format":"sandwich tune journal"`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, maxBytes+1); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenJournal(path, testKey, true); !errors.Is(err, ErrNoJournal) {
		t.Errorf("error %v", err)
	}
}
