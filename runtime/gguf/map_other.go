//go:build !linux

package gguf

import (
	"io"
	"os"

	"sandwich/runtime/background"
)

// mapBytes reads the first size bytes of file.
func mapBytes(file *os.File, size int64) (data []byte, unmap func() error, err error) {
	data = make([]byte, size)
	_, err = io.ReadFull(file, data)
	return data, func() error { return nil }, err
}

// Release does nothing on this system, where a file is read onto the heap.
func (t *Tensor) Release(background.Run) {}

// ReleasePiece does nothing on this system.
func (t *Tensor) ReleasePiece(int) (more bool) { return false }

// Release does nothing on this system.
func (f *File) Release(background.Run) {}
