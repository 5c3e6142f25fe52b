//go:build unix && !race

package mem

import (
	"errors"
	"os"
	"unsafe"

	"sandwich/internal/num"

	"golang.org/x/sys/unix"
)

// Mapped tells whether buffers are mappings of their own: not under the race detector, nor where
// there is no mmap.
const Mapped = true

var pageSize = os.Getpagesize()

// mapMemory maps size bytes, rounded up to pages, zeroed. With huge the mapping starts at a huge
// page border and is whole huge pages long if it is at least one; the spare ends are given back.
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

func trim(at unsafe.Pointer, n int) error {
	if n == 0 {
		return nil
	}
	return unix.MunmapPtr(at, uintptr(n))
}
