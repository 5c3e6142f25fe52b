// Package disk reserves, measures and flushes the space of files on the disk.
package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrDisk marks errors that occurred while a file was stored.
var ErrDisk = errors.New("the file cannot be stored")

// Error marks an error as one of storing a file; nil stays nil.
func Error(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrDisk, err)
}

// blockSize is the unit of Stat_t.Blocks in bytes.
const blockSize = 512

// Allocated returns the number of bytes on the disk that a file uses.
func Allocated(st fs.FileInfo) int64 {
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		return s.Blocks * blockSize
	}
	return st.Size()
}

// Free returns the number of bytes that the file system of a folder has for this user.
func Free(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}

// Reserve gives a file its size and, if the file system can, its blocks.
func Reserve(f *os.File, size int64) error {
	err := fallocate(f, size)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fmt.Errorf("%w: %w: the disk lacks room for %d bytes", ErrDisk, err, size)
	}
	return Error(f.Truncate(size))
}
