package retention

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
)

// File is a file that is being written. Writes go to a temporary file in the folder of the target;
// Commit renames it to the target. A File must not be used concurrently.
type File struct {
	file   *os.File // nil after Commit and Abort
	path   string   // as the caller named it, for messages
	target string   // path with its symbolic links resolved
}

// Create starts a file that Commit puts at path. Until Commit succeeds, path keeps what it holds
// and no other process sees the new bytes. A symbolic link stays a link: its target is replaced. A
// file that exists passes its permissions on to the new one. Create refuses with [ErrNotRegular]
// where path is a folder, a pipe, a device or an open descriptor.
func Create(path string) (*File, error) {
	target, err := Resolve(path)
	if err != nil {
		return nil, err
	}
	old, err := os.Stat(target)
	mode := fs.FileMode(0o666) // less the umask
	switch {
	case err == nil && !old.Mode().IsRegular():
		return nil, notRegular(path, old.Mode())
	case err == nil:
		mode = 0o600 // until it has the old file's
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	f, err := createTemporary(target, mode)
	if err != nil {
		return nil, renamed(err, path)
	}
	if old != nil {
		if err := f.Chmod(old.Mode().Perm()); err != nil {
			return nil, errors.Join(renamed(err, path), f.Close(), os.Remove(f.Name()))
		}
	}
	return &File{file: f, path: path, target: target}, nil
}

// Write appends to the temporary file.
func (f *File) Write(p []byte) (int, error) {
	n, err := f.file.Write(p)
	return n, renamed(err, f.path)
}

// Commit writes the bytes to the disk and gives the file its name. If anything fails, path keeps
// what it held and the temporary file is removed.
func (f *File) Commit() error {
	file := f.file
	f.file = nil
	err := file.Sync()
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err = renamed(err, f.path); err == nil {
		if err = os.Rename(file.Name(), f.target); err != nil {
			err = fmt.Errorf("write %s: %w", f.path, err)
		}
	}
	if err != nil {
		os.Remove(file.Name())
		return err
	}
	dir, _ := filepath.Split(f.target) // not cleaned, see Resolve
	if err := SyncDir(dir + "."); err != nil {
		return fmt.Errorf("write %s: %w", f.path, err)
	}
	return nil
}

// Abort removes the temporary file. It does nothing after Commit, so that callers can defer it.
func (f *File) Abort() {
	if f.file == nil {
		return
	}
	f.file.Close()
	os.Remove(f.file.Name())
	f.file = nil
}

// WriteTo replaces the file at path by what write produces, as Create and Commit do. If write
// fails, path keeps what it held.
func WriteTo(path string, write func(w io.Writer) error) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := write(f); err != nil {
		return err
	}
	return f.Commit()
}

// WriteFile replaces the file at path by data, as Create and Commit do.
func WriteFile(path string, data []byte) error {
	return WriteTo(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// SyncDir writes the entries of a folder to the disk. It ignores file systems that cannot do so.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, fs.ErrInvalid) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// createTemporary creates a hidden file in the folder of path that no other process has.
func createTemporary(path string, mode fs.FileMode) (*os.File, error) {
	dir, base := filepath.Split(path)
	if base == "" {
		return nil, &fs.PathError{Op: "create", Path: path, Err: syscall.EISDIR}
	}
	const attempts, longest = 100, 64 // the name stays within the limit of every file system
	var err error
	for range attempts {
		name := fmt.Sprintf("%s.%s.tmp-%016x", dir, base[:min(len(base), longest)], rand.Uint64())
		var f *os.File
		f, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
	return nil, err
}

// renamed makes an error about the temporary file one about path.
func renamed(err error, path string) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return &fs.PathError{Op: "write", Path: path, Err: p.Err}
	}
	return err
}
