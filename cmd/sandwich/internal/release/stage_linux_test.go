package main

import (
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandwich/cmd/sandwich/internal/release/archive"
)

// TestStage checks the modes and times of staged files under a strict umask.
func TestStage(t *testing.T) {
	when := time.Unix(1700000000, 0)
	b := builder{source: "../../../..", when: when}
	dir := filepath.Join(t.TempDir(), "stage")
	old := syscall.Umask(0o077)
	err := b.stage(dir, []archive.File{{Name: "bin/sandwich", Mode: 0o755},
		{Name: "etc/sandwich/config.yaml", Mode: 0o644}, {Name: "share/doc/sandwich/LICENSE", Mode: 0o644}})
	syscall.Umask(old)
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]fs.FileMode{}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		if !st.ModTime().Equal(when) {
			t.Errorf("%s has the time %s", path, st.ModTime())
		}
		if d.IsDir() && st.Mode().Perm() != 0o755 {
			t.Errorf("folder %s has the mode %o", path, st.Mode().Perm())
		}
		modes[strings.TrimPrefix(path, dir+"/")] = st.Mode().Perm()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{"usr/bin/sandwich": 0o755, "etc/sandwich/config.yaml": 0o644,
		"usr/share/doc/sandwich/copyright": 0o644, "postinst": 0o755, "nfpm.yaml": 0o755} {
		if modes[name] != want {
			t.Errorf("%s has the mode %o, want %o", name, modes[name], want)
		}
	}
}
