package retention

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandwich/internal/testwait"
)

// special makes one of each kind of file that is not regular, by the word that messages have for
// it. Device nodes are left out where the system does not permit them.
func special(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	out := map[string]string{"a folder": filepath.Join(dir, "folder"), "a pipe": filepath.Join(dir, "pipe"),
		"a socket": filepath.Join(dir, "socket")}
	must(t, os.Mkdir(out["a folder"], 0o755))
	must(t, unix.Mkfifo(out["a pipe"], 0o600))
	l, err := net.Listen("unix", out["a socket"])
	must(t, err)
	t.Cleanup(func() { l.Close() })
	for word, node := range map[string]struct {
		mode         uint32
		major, minor uint32
	}{"a character device": {unix.S_IFCHR, 1, 3}, "a block device": {unix.S_IFBLK, 7, 250}} {
		path := filepath.Join(dir, word)
		if err := unix.Mknod(path, node.mode|0o600, int(unix.Mkdev(node.major, node.minor))); err != nil {
			t.Logf("%s cannot be made here: %v", word, err)
			continue
		}
		out[word] = path
	}
	return out
}

func TestRefusesSpecialFiles(t *testing.T) {
	for word, path := range special(t) {
		before, err := os.Lstat(path)
		must(t, err)
		link := filepath.Join(t.TempDir(), "link")
		must(t, os.Symlink(path, link))
		for name, f := range map[string]func(path string) error{
			"WriteFile":   func(path string) error { return WriteFile(path, []byte("x")) },
			"OpenRegular": func(path string) error { _, err := OpenRegular(path); return err },
			"OpenUpdate":  func(path string) error { _, err := OpenUpdate(path, os.O_APPEND); return err },
			"ReadRegular": func(path string) error { _, err := ReadRegular(path, 10); return err },
		} {
			for _, path := range []string{path, link} {
				err := testwait.Returns(t, name, func() error { return f(path) })
				if !errors.Is(err, ErrNotRegular) || !strings.Contains(err.Error(), word) ||
					!strings.HasPrefix(err.Error(), path) {
					t.Errorf("%s of %s: %v", name, word, err)
				}
			}
		}
		if after, err := os.Lstat(path); err != nil || after.Mode() != before.Mode() {
			t.Errorf("%s became %v, %v", word, after.Mode(), err)
		}
	}
}

// TestRefusesDescriptors checks that a name of an open file is not replaced.
func TestRefusesDescriptors(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	must(t, err)
	defer f.Close()
	link := filepath.Join(t.TempDir(), "stdout")
	must(t, os.Symlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), link))
	if err := WriteFile(link, nil); !errors.Is(err, ErrNotRegular) {
		t.Errorf("error %v", err)
	}
}

func TestOpenUpdate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	for range 2 {
		f, err := OpenUpdate(path, os.O_APPEND)
		must(t, err)
		_, err = f.WriteString("line\n")
		must(t, errors.Join(err, f.Close()))
	}
	link := filepath.Join(dir, "link")
	must(t, os.Symlink("new", link))
	f, err := OpenUpdate(link, 0)
	must(t, err)
	must(t, f.Close())
	if got := content(path); got != "line\nline\n" || names(t, dir) != "link log new" {
		t.Errorf("%q; the folder holds %s", got, names(t, dir))
	}
	if data, err := ReadRegular(path, 10); err != nil || len(data) != 10 {
		t.Errorf("a file of the limit's size: %v", err)
	}
	if _, err := ReadRegular(path, 9); err == nil {
		t.Error("a file above the limit was read")
	}
}

// TestFullDisk writes to a full file system: under a limit on the size of files, and on a
// small one where this process may mount it.
func TestFullDisk(t *testing.T) {
	if path := os.Getenv("RETENTION_FULL_DISK"); path != "" {
		must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 4096, Max: 4096}))
		if err := WriteFile(path, make([]byte, 1<<20)); !errors.Is(err, unix.EFBIG) {
			t.Errorf("beyond the limit: %v", err)
		}
		return
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	must(t, os.WriteFile(path, []byte("old"), 0o600))
	cmd := exec.Command(os.Args[0], "-test.run=^TestFullDisk$", "-test.v")
	cmd.Env = append(os.Environ(), "RETENTION_FULL_DISK="+path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if content(path) != "old" || names(t, dir) != "file" {
		t.Errorf("it holds %q, the folder %s", content(path), names(t, dir))
	}
	t.Run("mounted", func(t *testing.T) {
		small := t.TempDir()
		if err := unix.Mount("none", small, "tmpfs", 0, "size=64k"); err != nil {
			t.Skipf("a tmpfs cannot be mounted; run as root with CAP_SYS_ADMIN: %v", err)
		}
		t.Cleanup(func() { _ = unix.Unmount(small, 0) })
		path := filepath.Join(small, "file")
		must(t, WriteFile(path, []byte("old")))
		if err := WriteFile(path, make([]byte, 1<<20)); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("on a full disk: %v", err)
		}
		if content(path) != "old" || names(t, small) != "file" {
			t.Errorf("it holds %q, the folder %s", content(path), names(t, small))
		}
	})
}
