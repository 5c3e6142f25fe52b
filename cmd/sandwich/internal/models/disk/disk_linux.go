package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// fallocate reserves the blocks of a file.
func fallocate(f *os.File, size int64) error {
	if size == 0 {
		return nil
	}
	return unix.Fallocate(int(f.Fd()), 0, 0, size)
}

// Flush writes the bytes of a file to the disk.
func Flush(f *os.File) error {
	return Error(unix.Fdatasync(int(f.Fd())))
}
