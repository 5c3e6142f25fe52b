package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"debug/buildinfo"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

// copySource copies the files of the source tree that a release contains into a new folder, with
// the given time, in an order of its own.
func copySource(t *testing.T, when time.Time, backwards bool) string {
	t.Helper()
	dir := t.TempDir()
	var names []string
	for _, pattern := range []string{"*.md", "LICENSE", "docs/*.md", "packaging/*", "packaging/scripts/*"} {
		found, err := filepath.Glob(filepath.Join("../../../..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, found...)
	}
	if backwards {
		slices.Reverse(names)
	}
	for _, from := range names {
		st, err := os.Stat(from)
		if err != nil || st.IsDir() {
			continue
		}
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		rel, err := filepath.Rel("../../../..", from)
		if err != nil {
			t.Fatal(err)
		}
		b := builder{when: when}
		if err := b.put(filepath.Join(dir, rel), data, 0o640); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// releaseFiles writes a release from a copy of the source tree and returns its files by name.
func releaseFiles(t *testing.T, source string, when time.Time) map[string][]byte {
	t.Helper()
	b := builder{source: source, out: filepath.Join(t.TempDir(), "release"), version: "1.2.3+4.gabc", commit: "abc",
		archs: []string{"amd64", "arm64"}, when: when, noDeb: true,
		info: func(binary []byte) (*buildinfo.BuildInfo, error) {
			arch := strings.TrimPrefix(string(binary), "program ")
			return &buildinfo.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Path: "sandwich"},
				Settings: []debug.BuildSetting{{Key: "GOOS", Value: "linux"}, {Key: "GOARCH", Value: arch}}}, nil
		}}
	p := &parts{binaries: map[string][]byte{"amd64": []byte("program amd64"), "arm64": []byte("program arm64")},
		pages:       map[string][]byte{"sandwich.1": []byte(".TH"), "sandwich-serve.1": []byte(".TH")},
		completions: map[string][]byte{"bash": []byte("b"), "zsh": []byte("z"), "fish": []byte("f")}}
	if err := b.write(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	err := filepath.WalkDir(b.out, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[strings.TrimPrefix(path, b.out+"/")], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestReproducible compares releases of equal sources in different folders with different times,
// and lists one.
func TestReproducible(t *testing.T) {
	when := time.Unix(1700000000, 0)
	first := releaseFiles(t, copySource(t, time.Unix(1e9, 0), false), when)
	second := releaseFiles(t, copySource(t, time.Now(), true), when)
	for name, data := range first {
		if !bytes.Equal(data, second[name]) {
			t.Errorf("%s differs between two builds", name)
		}
	}
	if len(first) != len(second) {
		t.Errorf("%d files, then %d", len(first), len(second))
	}
	for _, name := range []string{"sandwich-1.2.3+4.gabc-linux-amd64.tar.gz",
		"sandwich-1.2.3+4.gabc-linux-arm64.cdx.json",
		"sandwich-1.2.3+4.gabc-image-arm64.tar", "image/index.json", sumsFile} {
		if first[name] == nil {
			t.Errorf("the release has no %s, but %q", name, slices.Sorted(maps.Keys(first)))
		}
	}
	for line := range strings.Lines(string(first[sumsFile])) {
		want, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok || sum(first[name]) != want {
			t.Errorf("the checksum of %s is wrong", name)
		}
	}
	checkTarball(t, first["sandwich-1.2.3+4.gabc-linux-arm64.tar.gz"])
}

func checkTarball(t *testing.T, packed []byte) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]int64{}
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		modes[strings.TrimPrefix(h.Name, "sandwich-1.2.3+4.gabc-linux-arm64/")] = h.Mode
	}
	for name, mode := range map[string]int64{"bin/sandwich": 0o755, "share/doc/sandwich/LICENSE": 0o644,
		"share/doc/sandwich/README.md":     0o644,
		"share/doc/sandwich/docs/serve.md": 0o644, "etc/sandwich/config.yaml": 0o644,
		"lib/systemd/system/sandwich.service": 0o644, "lib/sysusers.d/sandwich.conf": 0o644,
		"share/man/man1/sandwich-serve.1.gz": 0o644, "share/bash-completion/completions/sandwich": 0o644,
		"share/doc/sandwich/sbom.cdx.json": 0o644} {
		if modes[name] != mode {
			t.Errorf("%s has the mode %o, want %o", name, modes[name], mode)
		}
	}
}

func TestReleaseRefusals(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b := builder{out: dir}
	if err := b.clear(); err == nil || !strings.Contains(err.Error(), "thesis.txt") {
		t.Errorf("a folder with other files: %v", err)
	}
	for _, version := range []string{"", "1.2-3", "../1"} {
		if err := run(context.Background(), []string{"-version", version}); err == nil {
			t.Errorf("the version %q was accepted", version)
		}
	}
	if _, err := readInfo([]byte("no program")); err == nil {
		t.Error("a file without build information was accepted")
	}
}
