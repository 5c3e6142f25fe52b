package outfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandwich/profiles/retention"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

func TestRegularFiles(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	must(t, os.Symlink("file", link))
	must(t, os.WriteFile(path+".tmp", []byte("of the user"), 0o600))
	must(t, Write(t.Context(), link, text("one")))
	failed := errors.New("failed")
	err := Write(t.Context(), link, func(w io.Writer) error {
		fmt.Fprint(w, "half of it")
		return failed
	})
	if !errors.Is(err, failed) {
		t.Errorf("error %v", err)
	}
	for name, want := range map[string]string{"file": "one", "file.tmp": "of the user"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); string(got) != want {
			t.Errorf("%s holds %q, %v", name, got, err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 3 {
		t.Errorf("the folder holds %v, %v", entries, err)
	}
}

func pipe(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	must(t, unix.Mkfifo(path, 0o600))
	return path
}

// TestPipe checks that a reader gets the bytes, also one that comes after the writer, and that the
// pipe stays one.
func TestPipe(t *testing.T) {
	path := pipe(t)
	got := make(chan string)
	go func() {
		data, err := os.ReadFile(path)
		got <- fmt.Sprint(string(data), err)
	}()
	long := strings.Repeat("0123456789", 1<<16)
	must(t, Write(t.Context(), path, text(long)))
	if s := <-got; s != long+"<nil>" {
		t.Errorf("the reader got %d bytes: %.60s", len(s), s)
	}
	if st, err := os.Lstat(path); err != nil || st.Mode().Type() != fs.ModeNamedPipe {
		t.Errorf("the pipe became %v, %v", st.Mode(), err)
	}
}

// TestPipeIsInterrupted checks that the end of the context ends waiting for a reader, and for one
// that does not read on.
func TestPipeIsInterrupted(t *testing.T) {
	path := pipe(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*readerWait)
	defer cancel()
	if _, err := Create(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without a reader: %v", err)
	}
	reader, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	must(t, err)
	defer reader.Close()
	ctx, cancel = context.WithCancel(t.Context())
	f, err := Create(ctx, path)
	must(t, err)
	defer f.Abort()
	done := make(chan error)
	go func() {
		_, err := f.Write(make([]byte, 16<<20))
		done <- err
	}()
	cancel()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("writing does not end")
	}
}

// TestDevices writes to copies of device nodes, where this process may make and open them.
func TestDevices(t *testing.T) {
	for name, c := range map[string]struct {
		mode         uint32
		major, minor uint32
		want         error
	}{
		"null":  {unix.S_IFCHR, 1, 3, nil},
		"full":  {unix.S_IFCHR, 1, 7, unix.ENOSPC},
		"block": {unix.S_IFBLK, 7, 250, retention.ErrNotRegular},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name)
			if err := unix.Mknod(path, c.mode|0o600, int(unix.Mkdev(c.major, c.minor))); err != nil {
				t.Skipf("device nodes cannot be made; run as root with CAP_MKNOD: %v", err)
			}
			if f, err := os.OpenFile(path, os.O_WRONLY, 0); c.mode == unix.S_IFCHR {
				if err != nil {
					t.Skipf("device nodes cannot be opened; mount the temporary folder without nodev: %v", err)
				}
				f.Close()
			}
			before, err := os.Lstat(path)
			must(t, err)
			if err := Write(t.Context(), path, text("x")); !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			if after, err := os.Lstat(path); err != nil || after.Mode() != before.Mode() {
				t.Errorf("it became %v, %v", after.Mode(), err)
			}
		})
	}
}

// TestDescriptors checks that the name of an open file appends to that file, and that a pipe whose
// reader is gone is an error.
func TestDescriptors(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	must(t, err)
	defer file.Close()
	_, err = file.WriteString("one ")
	must(t, err)
	link := filepath.Join(t.TempDir(), "stdout")
	must(t, os.Symlink(fmt.Sprintf("/proc/self/fd/%d", file.Fd()), link))
	must(t, Write(t.Context(), link, text("two")))
	if got, err := os.ReadFile(file.Name()); string(got) != "one two" {
		t.Errorf("it holds %q, %v", got, err)
	}
	r, w, err := os.Pipe()
	must(t, err)
	defer w.Close()
	must(t, r.Close())
	if err := Write(t.Context(), fmt.Sprintf("/proc/self/fd/%d", w.Fd()), text("x")); err == nil {
		t.Error("a pipe without a reader was written")
	}
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]error{dir: retention.ErrNotRegular,
		filepath.Join(dir, "none", "file"): fs.ErrNotExist} {
		if err := Write(t.Context(), path, text("x")); !errors.Is(err, want) || strings.Contains(err.Error(), ".tmp-") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
