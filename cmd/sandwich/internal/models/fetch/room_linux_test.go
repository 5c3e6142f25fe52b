package fetch

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestCheckRoom checks that only the missing bytes of downloads need room.
func TestCheckRoom(t *testing.T) {
	dir := t.TempDir()
	base := filepath.Join(dir, "x")
	if err := os.WriteFile(partPath(base), bytes.Repeat([]byte{1}, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		size, available int64
		fits            bool
	}{{1 << 30, spare + 1<<30, true}, {1 << 30, spare, false}, {1 << 20, 0, true}, {-1, 0, true}, {3 << 20, spare +
		2<<20,
		true}, {4 << 20, spare + 2<<20, false}} {
		err := checkRoom(dir, []Wanted{{base, c.size}}, c.available)
		if (err == nil) != c.fits || err != nil && !strings.Contains(err.Error(), "SANDWICH_MODELS") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if err := CheckRoom(dir, []Wanted{{filepath.Join(dir, "y"), 1 << 60}}); err == nil {
		t.Error("an exbibyte fits")
	}
}

// TestFullDisk downloads to a file system without room for the file: the download fails at once,
// and continues when there is room.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("a small file system cannot be mounted: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	data := content(200_000)
	f := File{URL: serve(t, file(data, `"1"`)), Size: int64(len(data)), SHA256: sumOf(data)}
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, content(150_000), 0o600); err != nil {
		t.Fatal(err)
	}
	base := filepath.Join(dir, "x")
	if _, err := get(t, f, base, quick()); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("full disk: %v", err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if got, err := get(t, f, base, quick()); err != nil || !bytes.Equal(got, data) {
		t.Errorf("with room: %v", err)
	}
}
