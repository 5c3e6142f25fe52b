package bundle

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestWriteFollowsLinks checks that a plan replaces what a symbolic link leads to, as a folder and
// packed, and that the link stays.
func TestWriteFollowsLinks(t *testing.T) {
	b := newBundle(t)
	for _, suffix := range []string{Suffix, ArchiveSuffix} {
		dir := t.TempDir()
		target, link := filepath.Join(dir, "releases", "two"+suffix), filepath.Join(dir, "current"+suffix)
		if err := os.Mkdir(filepath.Dir(target), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join("releases", "two"+suffix), link); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"first", "second"} { // to nothing, and to an older plan
			b.Plan.Name = name
			if err := b.Write(link); err != nil {
				t.Fatal(err)
			}
			if got, err := Read(target); err != nil || got.Plan.Name != name {
				t.Errorf("%s: read %v, %v", suffix, got, err)
			}
			if to, err := os.Readlink(link); to != filepath.Join("releases", "two"+suffix) {
				t.Errorf("%s: the link leads to %q, %v", suffix, to, err)
			}
		}
		for _, in := range []string{dir, filepath.Dir(target)} {
			if entries, err := os.ReadDir(in); err != nil || len(entries) > 2 {
				t.Errorf("%s: left in %s: %v, %v", suffix, in, entries, err)
			}
		}
	}
}

// TestUnreadablePath checks that the message for a path that cannot be read names it once.
func TestUnreadablePath(t *testing.T) {
	dir := t.TempDir()
	loop := filepath.Join(dir, "loop")
	if err := os.Symlink("loop", loop); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{loop: syscall.ELOOP, filepath.Join(dir, "none"): fs.ErrNotExist} {
		_, err := Read(path)
		if !errors.Is(err, want) || strings.Count(err.Error(), path) != 1 {
			t.Errorf("Read(%s): %v", path, err)
		}
	}
}
