//go:build linux

package bundle

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFullDisk makes all writes beyond some kilobytes fail, in a separate process, and checks that
// the old bundle is complete and no other file is left.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv("PLANS_FULL_DISK"); dir != "" {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 4096, Max: 4096}); err != nil {
			t.Fatal(err)
		}
		b := newBundle(t)
		b.Plan.Name = "the one that does not fit"
		if err := b.Write(dir); err == nil {
			t.Fatal("writing beyond the limit succeeded")
		}
		return
	}
	old := newBundle(t)
	dir := written(t, old)
	cmd := exec.Command(os.Args[0], "-test.run=^TestFullDisk$", "-test.v")
	cmd.Env = append(os.Environ(), "PLANS_FULL_DISK="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got, err := Read(dir)
	if err != nil || got.Plan.Name != old.Plan.Name {
		t.Errorf("the older bundle was hurt: %v", err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(dir)); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}
