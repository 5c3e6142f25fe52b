package disk

import (
	"io"
	"io/fs"
	"os"
)

// File is a file of a Store.
type File interface {
	io.Writer
	io.ReaderAt
	io.Closer
	Stat() (fs.FileInfo, error)
	Sync() error
}

// Files is the access of a Store to the contents of files. Tests replace it to inject faults and
// delays. Methods may be called concurrently.
type Files interface {
	// Create makes a file with mode 0600 that did not exist.
	Create(path string) (File, error)
	// Open opens a file for reads of whole pages, past the page cache where that is supported. It
	// does not follow a symbolic link.
	Open(path string) (File, error)
	Rename(from, to string) error
}

// HostFiles returns the files of the operating system.
func HostFiles() Files { return hostFiles{} }

type hostFiles struct{}

func (hostFiles) Create(path string) (File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if !tryLock(f) { // marks it as in use, for removeOrphans
		_ = f.Close()
		return nil, &fs.PathError{Op: "lock", Path: path, Err: fs.ErrExist}
	}
	return f, nil
}

func (hostFiles) Open(path string) (File, error) {
	f, err := openDirect(path)
	if err != nil {
		return nil, err
	}
	return pageFile{f}, nil
}

// pageFile is a file that was opened for reads of whole pages.
type pageFile struct{ *os.File }

func (hostFiles) Rename(from, to string) error { return os.Rename(from, to) }
