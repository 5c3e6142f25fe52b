//go:build !linux

package gguf

import (
	"io"
	"os"
)

// mapped tells that mapBytes reads the file onto the heap.
const mapped = false

// mapBytes reads the first size bytes of file.
func mapBytes(file *os.File, size int64) (mapping, error) {
	data := make([]byte, size)
	if _, err := io.ReadFull(file, data); err != nil {
		return mapping{}, err
	}
	return mapping{data: data, unmap: func() error { return nil }}, nil
}

// Release does nothing on this system, where a file is read onto the heap.
func (t *Tensor) Release() error { return nil }
