//go:build !linux

package disk

import "os"

// fallocate does nothing: the blocks of the file are reserved when they are written.
func fallocate(*os.File, int64) error { return nil }

// Flush writes the bytes of a file to the disk.
func Flush(f *os.File) error {
	return Error(f.Sync())
}
