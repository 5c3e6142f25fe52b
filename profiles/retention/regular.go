package retention

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrNotRegular is wrapped by refusals of folders, pipes, sockets and devices.
var ErrNotRegular = errors.New("not a regular file")

// notRegular says what a path is instead of a regular file.
func notRegular(path string, mode fs.FileMode) error {
	what := "something else"
	switch {
	case mode.IsDir():
		what = "a folder"
	case mode&fs.ModeNamedPipe != 0:
		what = "a pipe"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	case mode&fs.ModeCharDevice != 0:
		what = "a character device"
	case mode&fs.ModeDevice != 0:
		what = "a block device"
	}
	return fmt.Errorf("%s is %w but %s; name a regular file", path, ErrNotRegular, what)
}

// OpenRegular opens a regular file for reading. It refuses pipes, devices and folders with
// [ErrNotRegular] before it opens them, since opening a pipe waits for a writer and reading a
// device may never end, and checks again after opening, since another process may have replaced the
// file.
func OpenRegular(path string) (*os.File, error) { return open(path, os.O_RDONLY) }

// OpenUpdate opens a regular file for reading and writing, with further flags of [os.OpenFile], and
// creates it if it does not exist. It refuses what OpenRegular refuses.
func OpenUpdate(path string, flags int) (*os.File, error) {
	return open(path, os.O_RDWR|os.O_CREATE|flags)
}

func open(path string, flags int) (*os.File, error) {
	st, err := os.Stat(path)
	switch {
	case err == nil && !st.Mode().IsRegular():
		return nil, notRegular(path, st.Mode())
	case err != nil && (flags&os.O_CREATE == 0 || !errors.Is(err, fs.ErrNotExist)):
		return nil, err
	}
	f, err := os.OpenFile(path, flags|syscall.O_NONBLOCK, 0o666)
	if err != nil {
		return nil, err
	}
	if st, err = f.Stat(); err == nil && !st.Mode().IsRegular() {
		err = notRegular(path, st.Mode())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ReadRegular reads a regular file of at most limit bytes. It refuses what [OpenRegular] refuses,
// and larger files.
func ReadRegular(path string, limit int64) ([]byte, error) {
	f, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, limit)
	}
	return data, nil
}

// maxLinks is the number of symbolic links after which the kernel gives up, too.
const maxLinks = 40

// Resolve follows the symbolic links at the end of path, also to a file that does not exist yet. It
// refuses links to open descriptors, such as /dev/stdout: a rename cannot replace what they lead
// to.
func Resolve(path string) (string, error) {
	at := path
	for range maxLinks {
		st, err := os.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			return at, nil // if its folder is missing, creating the file says so
		}
		if err != nil {
			return "", err
		}
		if st.Mode()&fs.ModeSymlink == 0 {
			return at, nil
		}
		dir, _ := filepath.Split(at) // not cleaned: a/link/../b is not a/b
		if strings.HasPrefix(dir, "/proc/") {
			return "", fmt.Errorf("%s is %w but an open descriptor; name a regular file", path, ErrNotRegular)
		}
		if at, err = os.Readlink(at); err != nil {
			return "", err
		}
		if !filepath.IsAbs(at) {
			at = dir + at
		}
	}
	return "", &fs.PathError{Op: "open", Path: path, Err: syscall.ELOOP}
}

// MakeDir creates a folder and the folders above it, like os.MkdirAll. Its error names a symbolic
// link in the path that leads to no folder.
func MakeDir(path string, mode fs.FileMode) error {
	err := os.MkdirAll(path, mode)
	var made, followed *fs.PathError
	if !errors.As(err, &made) || !errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, stat := os.Stat(path); errors.As(stat, &followed) {
		return fmt.Errorf("the symbolic link %s leads to no folder: %w", made.Path, followed.Err)
	}
	return err
}
