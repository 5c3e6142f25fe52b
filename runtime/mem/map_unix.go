//go:build unix && !race

package mem

import (
	"errors"
	"os"
	"unsafe"

	"sandwich/internal/num"

	"golang.org/x/sys/unix"
)

// Mapped reports whether each buffer is a separate mapping. It is false under the race detector and
// on systems without mmap.
const Mapped = true

var pageSize = os.Getpagesize()

// mapMemory maps size bytes of zeroed memory, rounded up to pages. With huge, a mapping of at least
// one huge page starts at a huge page boundary and consists of whole huge pages; the excess at both
// ends is unmapped.
func mapMemory(size int, huge bool) ([]byte, func() error, error) {
	unit := pageSize
	if huge && size >= hugeSize {
		unit = hugeSize
	}
	size = num.RoundUp(size, unit)
	spare := unit - pageSize
	base, err := unix.MmapPtr(-1, 0, nil, uintptr(size+spare), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, nil, err
	}
	lead := (unit - int(uintptr(base)%uintptr(unit))) % unit
	start := unsafe.Add(base, lead)
	if err := errors.Join(trim(base, lead), trim(unsafe.Add(start, size), spare-lead)); err != nil {
		return nil, nil, err
	}
	unmap := func() error { return unix.MunmapPtr(start, uintptr(size)) }
	return unsafe.Slice((*byte)(start), size), unmap, nil
}

// discard drops whole pages of private memory. It is advice; an error changes nothing.
func discard(data []byte) {
	lead := -int(uintptr(unsafe.Pointer(&data[0]))) & (pageSize - 1)
	if whole := (len(data) - lead) &^ (pageSize - 1); whole > 0 {
		_ = unix.Madvise(data[lead:lead+whole], unix.MADV_DONTNEED)
	}
}

func trim(at unsafe.Pointer, n int) error {
	if n == 0 {
		return nil
	}
	return unix.MunmapPtr(at, uintptr(n))
}
