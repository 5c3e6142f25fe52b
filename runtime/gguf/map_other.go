//go:build !linux

package gguf

import (
	"io"
	"os"
)

// mapBytes reads the first size bytes of file.
func mapBytes(file *os.File, size int64) (data []byte, unmap func() error, err error) {
	data = make([]byte, size)
	_, err = io.ReadFull(file, data)
	return data, func() error { return nil }, err
}

// Release does nothing on this system, where a file is read onto the heap.
func (t *Tensor) Release() error { return nil }
