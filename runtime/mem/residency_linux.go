package mem

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

const residencyBatch = 4096 // pages asked about in one call

// ResidencyOf looks up where each page of b is, by move_pages without targets; b may also be a mapped file. In a
// sandbox that forbids the call, Known is false.
func ResidencyOf(b []byte) (Residency, error) {
	r := Residency{Pages: map[int]int{}, Known: true}
	if len(b) == 0 {
		return r, nil
	}
	at := uintptr(unsafe.Pointer(&b[0]))
	end := at + uintptr(len(b))
	at &^= uintptr(pageSize - 1)
	pages := make([]uintptr, 0, residencyBatch)
	status := make([]int32, residencyBatch)
	for at < end {
		pages = pages[:0]
		for ; at < end && len(pages) < residencyBatch; at += uintptr(pageSize) {
			pages = append(pages, at)
		}
		_, _, errno := unix.Syscall6(unix.SYS_MOVE_PAGES, 0, uintptr(len(pages)), uintptr(unsafe.Pointer(&pages[0])), 0,
			uintptr(unsafe.Pointer(&status[0])), 0)
		if errno == unix.EPERM || errno == unix.ENOSYS {
			return Residency{}, nil
		}
		if errno != 0 {
			return Residency{}, fmt.Errorf("asking where %d bytes are: %w", len(b), errno)
		}
		if err := r.count(status[:len(pages)]); err != nil {
			return Residency{}, err
		}
	}
	return r, nil
}

// count adds the answers of one call: a node or a negative error number per page.
func (r *Residency) count(status []int32) error {
	for _, s := range status {
		switch {
		case s >= 0:
			r.Pages[int(s)]++
		case unix.Errno(-s) == unix.ENOENT, unix.Errno(-s) == unix.EFAULT: // never touched; the shared zero page
			r.Absent++
		case unix.Errno(-s) == unix.EACCES:
			return errors.New("the pages are mapped by several processes, whose placement only root may see")
		default:
			return fmt.Errorf("asking where a page is: %w", unix.Errno(-s))
		}
	}
	return nil
}
