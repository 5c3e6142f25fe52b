package gguf

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapBytes maps the first size bytes of file. Nothing is read from the disk before it is touched.
func mapBytes(file *os.File, size int64) (data []byte, unmap func() error, err error) {
	data, err = unix.Mmap(int(file.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	return data, func() error { return unix.Munmap(data) }, err
}

// Release drops the tensor's pages from this process's memory; reading Data again reads the file
// again. The loader calls it for each tensor it has packed, so that the weights are resident once.
// It does nothing for a file made by Parse.
func (t *Tensor) Release() error {
	if t.part == nil || len(t.Data) == 0 {
		return nil
	}
	page := uintptr(os.Getpagesize())
	start := uintptr(unsafe.Pointer(&t.Data[0]))
	// Only whole pages: the edges may belong to an adjacent tensor that is still being read.
	skip := (page - start%page) % page
	if skip >= uintptr(len(t.Data)) {
		return nil
	}
	whole := (uintptr(len(t.Data)) - skip) &^ (page - 1)
	if whole == 0 {
		return nil
	}
	return unix.Madvise(t.Data[skip:skip+whole], unix.MADV_DONTNEED)
}
