package gguf

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandwich/runtime/background"
)

// mapBytes maps the first size bytes of file. Nothing is read from the disk before it is touched.
func mapBytes(file *os.File, size int64) (data []byte, unmap func() error, err error) {
	data, err = unix.Mmap(int(file.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	return data, func() error { return unix.Munmap(data) }, err
}

// releaseBytes is the size of a piece of Release in bytes. The kernel drops its pages within about
// a millisecond.
const releaseBytes = 4 << 20

// Release drops the tensor's pages from this process's memory, in pieces; reading Data again reads
// the file again. The loader calls it for each tensor it has packed, so that the weights are
// resident once. It does nothing for a file made by Parse.
func (t *Tensor) Release(pieces background.Run) {
	i := 0
	pieces.Do(func() bool {
		i++
		return t.ReleasePiece(i - 1)
	})
}

// ReleasePiece does piece number i of Release and reports whether there are more.
func (t *Tensor) ReleasePiece(i int) (more bool) {
	if t.part == nil {
		return false
	}
	return releasePiece(t.Data, i)
}

// Release drops the pages of the whole file from this process's memory, in pieces, so that Close
// has nothing left to do for them.
func (f *File) Release(pieces background.Run) {
	for _, p := range f.parts {
		i := 0
		pieces.Do(func() bool {
			i++
			return releasePiece(p.data, i-1)
		})
	}
}

// releasePiece drops piece number i of the whole pages of mapped data: the edges may belong to an
// adjacent tensor that is still being read. It is advice to the kernel; an error changes nothing.
func releasePiece(data []byte, i int) (more bool) {
	if len(data) == 0 {
		return false
	}
	page := os.Getpagesize()
	skip := -int(uintptr(unsafe.Pointer(&data[0]))) & (page - 1)
	lo, hi := skip+i*releaseBytes, skip+(len(data)-skip)&^(page-1)
	if lo >= hi {
		return false
	}
	_ = unix.Madvise(data[lo:min(hi, lo+releaseBytes)], unix.MADV_DONTNEED)
	return lo+releaseBytes < hi
}
