package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// open returns an empty store.
func open(t *testing.T) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "models"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// staged writes a file that can be installed.
func staged(t *testing.T, name, text string) Staged {
	t.Helper()
	path := filepath.Join(t.TempDir(), "part")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Staged{File: File{Name: name, Size: int64(len(text)), SHA256: strings.Repeat("a", 63) + text[:1]},
		Path: path}
}

// install installs a model of one file.
func install(t *testing.T, s *Store, name, reference, text string) error {
	t.Helper()
	return s.Install(t.Context(), &Model{Name: name, Reference: reference}, []Staged{staged(t, "m.gguf", text)})
}

// content returns the text of a model's file.
func content(t *testing.T, s *Store, name string) string {
	t.Helper()
	m, err := s.Get(name)
	if err != nil {
		return err.Error()
	}
	path, err := s.Path(m)
	if err != nil {
		return err.Error()
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// TestInstall installs, replaces, lists and removes models.
func TestInstall(t *testing.T) {
	s := open(t)
	if err := errors.Join(install(t, s, "b", "hf:x/b", "1b"), install(t, s, "a", "hf:x/a", "1a"),
		install(t, s, "a", "hf:x/a", "2a")); err != nil {
		t.Fatal(err)
	}
	if err := install(t, s, "a", "hf:y/a", "3a"); err == nil || !strings.Contains(err.Error(), "--name") {
		t.Errorf("a taken name: %v", err)
	}
	if content(t, s, "a") != "2a" || content(t, s, "b") != "1b" {
		t.Errorf("%s, %s", content(t, s, "a"), content(t, s, "b"))
	}
	if entries, err := os.ReadDir(filepath.Join(s.dir, "a")); err != nil || len(entries) != 2 {
		t.Errorf("the folder of a has %v, %v", entries, err)
	}
	if st, err := os.Stat(s.dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	models, damaged, err := s.List()
	if err != nil || len(damaged) != 0 || len(models) != 2 || models[0].Name != "a" {
		t.Errorf("%v, %v, %v", models, damaged, err)
	}
	if m, err := s.ByReference("hf:x/b"); err != nil || m.Name != "b" {
		t.Errorf("%v, %v", m, err)
	}
	if err := s.Remove(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"a", "../b", "", ".partial", "b/.."} {
		if err := s.Remove(t.Context(), name); !errors.Is(err, ErrUnknown) {
			t.Errorf("removing %q: %v", name, err)
		}
		if _, err := s.Get(name); !errors.Is(err, ErrUnknown) {
			t.Errorf("getting %q: %v", name, err)
		}
	}
}

// TestDamage checks that changed, missing and hostile files are reported, and that their models can
// be removed and pulled again.
func TestDamage(t *testing.T) {
	s := open(t)
	for text, want := range map[string]string{
		"{":            "is damaged",
		`{"format":2}`: "its format is 2",
		`{"format":1}`: "another model",
		`{"format":1,"name":"a","folder":"../b","files":[{"name":"m.gguf"}]}`:    "not a valid name",
		`{"format":1,"name":"a","folder":"v","files":[{"name":"../../m.gguf"}]}`: "not a valid name",
		`{"format":1,"name":"a","folder":"v","files":[{"name":"m.gguf"}]}`:       "is missing",
	} {
		if err := install(t, s, "a", "hf:x/a", "1a"); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(s.dir, "a", manifestName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := content(t, s, "a"); !strings.Contains(got, want) {
			t.Errorf("%s: %s; want %q", text, got, want)
		}
		if err := s.Remove(t.Context(), "a"); err != nil {
			t.Error(err)
		}
	}
	if err := install(t, s, "a", "hf:x/a", "1a"); err != nil {
		t.Fatal(err)
	}
	m, err := s.Get("a")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.filePath(m, m.Files[0]), []byte("longer"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := content(t, s, "a"); !strings.Contains(got, "was changed") {
		t.Error(got)
	}
	if err := install(t, s, "a", "hf:x/a", "1a"); err != nil || content(t, s, "a") != "1a" {
		t.Errorf("%v, %s", err, content(t, s, "a"))
	}
}

// TestCacheFiles checks that a file in another program's cache is used in place and never removed,
// and that a change of it is reported.
func TestCacheFiles(t *testing.T) {
	s := open(t)
	f := staged(t, "m.gguf", "1a")
	st, err := os.Stat(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	f.Cache, f.Modified = f.Path, st.ModTime()
	if err := s.Install(t.Context(), &Model{Name: "a", Reference: "hf:x/a"}, []Staged{f}); err != nil {
		t.Fatal(err)
	}
	if content(t, s, "a") != "1a" || s.FindFile(f.SHA256, f.Size) != "" {
		t.Error(content(t, s, "a"))
	}
	if err := os.Chtimes(f.Path, st.ModTime(), st.ModTime().Add(1)); err != nil {
		t.Fatal(err)
	}
	if got := content(t, s, "a"); !strings.Contains(got, "was changed") {
		t.Error(got)
	}
	if err := s.Remove(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(f.Path); err != nil || string(text) != "1a" {
		t.Errorf("the file of the cache: %s, %v", text, err)
	}
}

// TestFindFile checks that models share files by their checksums.
func TestFindFile(t *testing.T) {
	s := open(t)
	f := staged(t, "m.gguf", "1a")
	if err := s.Install(t.Context(), &Model{Name: "a", Reference: "hf:x/a"}, []Staged{f}); err != nil {
		t.Fatal(err)
	}
	// "1" is a hexadecimal digit, so that the checksum is well formed.
	shared := f
	if shared.Path, shared.Shared = s.FindFile(f.SHA256, f.Size), true; shared.Path == "" {
		t.Fatal("the file is not found")
	}
	if err := s.Install(t.Context(), &Model{Name: "b", Reference: "hf:x/b"}, []Staged{shared}); err != nil {
		t.Fatal(err)
	}
	// The same model again: its file is where it belongs.
	if err := s.Install(t.Context(), &Model{Name: "a", Reference: "hf:x/a"}, []Staged{shared}); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(t.Context(), "a"); err != nil || content(t, s, "b") != "1a" {
		t.Errorf("%v, %s", err, content(t, s, "b"))
	}
}

// TestLock checks that one holder at a time has a lock, that waiting is reported and ends with the
// context, and that no lock file remains.
func TestLock(t *testing.T) {
	s := open(t)
	base, unlock, err := s.Lock(t.Context(), "k", func() { t.Error("waits for a free lock") })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, _, err := s.Lock(ctx, "k", cancel); !errors.Is(err, context.Canceled) {
		t.Errorf("a taken lock: %v", err)
	}
	waits := make(chan struct{})
	got := make(chan error)
	go func() {
		_, unlock, err := s.Lock(t.Context(), "k", func() { close(waits) })
		if err == nil {
			unlock()
		}
		got <- err
	}()
	<-waits
	unlock()
	if err := <-got; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(base + lockSuffix); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock file: %v", err)
	}
}

// TestUnfinished checks that unfinished downloads are listed, and removed unless they are in use.
func TestUnfinished(t *testing.T) {
	s := open(t)
	for _, key := range []string{"used", "left"} {
		base, unlock, err := s.Lock(t.Context(), key, func() {})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(base+".part", []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if key == "used" {
			defer unlock()
		} else {
			unlock()
		}
	}
	if list, err := s.Unfinished(); err != nil || len(list) != 2 {
		t.Errorf("%v, %v", list, err)
	}
	if n, _, err := s.RemoveUnfinished(t.Context()); err != nil || n != 1 {
		t.Errorf("%d removed, %v", n, err)
	}
	if list, err := s.Unfinished(); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
}

// TestOpen checks that folders which are not safe are rejected.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "chmod o-w") {
		t.Errorf("%v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file); err == nil || !strings.Contains(err.Error(), "not a folder") {
		t.Errorf("%v", err)
	}
}
