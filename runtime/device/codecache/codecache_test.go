package codecache

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func open(t *testing.T) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "kernels"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestStore checks that code is found under its key only, and again only after it was put back.
func TestStore(t *testing.T) {
	s := open(t)
	key, other := KeyOf([]byte("driver 1"), []byte("kernel")), KeyOf([]byte("driver 1k"), []byte("ernel"))
	if key == other {
		t.Error("two lists of properties have one key")
	}
	code := []byte("compiled")
	s.Put(key, code)
	info, err := os.Stat(s.path(key))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("permissions %v, %v", info, err)
	}
	if got := s.Take(other); got != nil {
		t.Errorf("another key has %q", got)
	}
	if got := s.Take(key); !bytes.Equal(got, code) {
		t.Errorf("code %q", got)
	}
	if got := s.Take(key); got != nil {
		t.Errorf("code that was taken: %q", got)
	}
	s.Put(key, code)
	again, err := Open(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := again.Take(key); !bytes.Equal(got, code) {
		t.Errorf("another process finds %q", got)
	}
	s.Put(key, nil)
	s.Put(key, make([]byte, MostCode+1))
	var none *Store
	none.Put(key, code)
	if s.Take(key) != nil || none.Take(key) != nil {
		t.Error("code that was not kept is found")
	}
}

// TestHostile checks that files that are damaged, belong to another kernel, or that others may
// write are ignored.
func TestHostile(t *testing.T) {
	s := open(t)
	key, other := KeyOf([]byte("kernel")), KeyOf([]byte("other"))
	write := func(data []byte, mode os.FileMode) {
		if err := os.WriteFile(s.path(key), data, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(s.path(key), mode); err != nil {
			t.Fatal(err)
		}
	}
	s.Put(key, []byte("compiled"))
	good, err := os.ReadFile(s.path(key))
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1
		write(bad, 0o600)
		if got := s.Take(key); got != nil {
			t.Fatalf("byte %d is damaged: %q", i, got)
		}
		write(good[:i], 0o600)
		if got := s.Take(key); got != nil {
			t.Fatalf("%d bytes: %q", i, got)
		}
	}
	write(append(header(other, []byte("x")), 'x'), 0o600)
	if got := s.Take(key); got != nil {
		t.Errorf("code of another kernel: %q", got)
	}
	for _, mode := range []os.FileMode{0o620, 0o602, 0o644} {
		write(good, mode)
		if got := s.Take(key); got != nil {
			t.Errorf("mode %v: %q", mode, got)
		}
	}
	write(append(header(key, make([]byte, 2*MostCode)), make([]byte, 2*MostCode)...), 0o600)
	if s.Take(key) != nil {
		t.Error("too much code is found")
	}
	elsewhere := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(elsewhere, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, s.path(key)); err != nil {
		t.Fatal(err)
	}
	if s.Take(key) != nil {
		t.Error("code of a link is found")
	}
	if err := os.Mkdir(s.path(key), 0o700); err != nil {
		t.Fatal(err)
	}
	if s.Take(key) != nil {
		t.Error("a folder has code")
	}
}

// TestFolder checks folders that are refused.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o722); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{dir, file, filepath.Join(file, "under")} {
		if _, err := Open(bad); err == nil {
			t.Errorf("%s is opened", bad)
		}
	}
}

// TestPrune checks that the oldest files go when there are too many bytes, and temporary files that
// remain.
func TestPrune(t *testing.T) {
	s := open(t)
	s.max = 10_000
	at := time.Now().Add(-24 * time.Hour)
	orphan := filepath.Join(s.dir, "new-1")
	if err := os.WriteFile(orphan, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	keys := make([]Key, 20)
	for i := range keys {
		keys[i] = KeyOf(fmt.Append(nil, i))
		s.Put(keys[i], make([]byte, 1000))
		_ = os.Chtimes(s.path(keys[i]), at, at.Add(time.Duration(i)*time.Minute)) // it may be removed
	}
	if err := os.Chtimes(orphan, at, at); err != nil {
		t.Fatal(err)
	}
	s.prune()
	if _, err := os.Stat(orphan); err == nil {
		t.Error("an old temporary file remains")
	}
	if s.Take(keys[0]) != nil || s.Take(keys[19]) == nil || s.size > s.max {
		t.Errorf("%d bytes; the oldest kernel remains or the newest is missing", s.size)
	}
}
