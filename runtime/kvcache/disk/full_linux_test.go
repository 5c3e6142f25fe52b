package disk

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFullDisk fills a file system of 1 MiB: blocks that do not fit leave nothing, there is one
// warning, blocks on disk are read, and writes go on once there is room.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m,mode=700"); err != nil {
		t.Skipf("mounting a small file system needs more rights: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	var warnings []string
	s := mustOpen(t, filepath.Join(dir, "store"), Options{Files: HostFiles(), Bytes: 1 << 30,
		Warn: func(text string) { warnings = append(warnings, text) }})
	const size = 300_000
	var written []Name
	full := 0
	for i := range 6 {
		info, data := block(1, i, size)
		switch err := s.Write(t.Context(), info, data); {
		case err == nil:
			written = append(written, info.Name())
		case errors.Is(err, ErrNoRoom):
			full++
		default:
			t.Errorf("block %d: %v", i, err)
		}
	}
	if len(written) == 0 || full == 0 || len(warnings) != 1 {
		t.Fatalf("%d blocks written, %d times no room, warnings %q", len(written), full, warnings)
	}
	if left, err := os.ReadDir(filepath.Join(s.dir, temporaryDir)); err != nil || len(left) != 0 {
		t.Errorf("%d temporary files are left, %v", len(left), err)
	}
	for _, n := range written {
		if _, _, err := read(s, n, size); err != nil {
			t.Errorf("a block on a full disk: %v", err)
		}
	}
	if err := s.Remove(written[0]); err != nil {
		t.Fatal(err)
	}
	info, data := block(1, 0, size)
	mustWrite(t, s, info, data)
	if _, err := Open(filepath.Join(dir, "store"), Options{}); err != nil {
		t.Errorf("opened on a full disk: %v", err)
	}
}
