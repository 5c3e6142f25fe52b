//go:build !unix || race

package mem

import (
	"os"
	"unsafe"

	"sandwich/internal/num"
)

// Mapped reports whether each buffer is a separate mapping. It is false under the race detector and
// on systems without mmap.
const Mapped = false

var pageSize = os.Getpagesize()

// discard does nothing: the memory is on the Go heap.
func discard([]byte) {}

// mapMemory allocates size bytes, rounded up to pages, on the Go heap, whose objects do not move.
func mapMemory(size int, _ bool) (data []byte, unmap func() error, err error) {
	size = num.RoundUp(size, pageSize)
	all := make([]byte, size+pageSize)
	lead := -int(uintptr(unsafe.Pointer(&all[0]))) & (pageSize - 1)
	return all[lead : lead+size : lead+size], func() error { return nil }, nil
}
