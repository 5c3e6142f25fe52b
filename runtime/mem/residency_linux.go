package mem

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

const residencyBatch = 4096 // pages per system call

// residencyOf returns the NUMA nodes of the pages of b, with move_pages without targets. b may also
// be a mapped file. In a sandbox that forbids the call, Known is false.
func residencyOf(b []byte) (Residency, error) {
	r := Residency{Pages: map[int]int{}, Known: true}
	if len(b) == 0 {
		return r, nil
	}
	at := uintptr(unsafe.Pointer(&b[0]))
	end := at + uintptr(len(b))
	at &^= uintptr(pageSize - 1)
	pages := make([]uintptr, 0, residencyBatch)
	for at < end {
		pages = pages[:0]
		for ; at < end && len(pages) < residencyBatch; at += uintptr(pageSize) {
			pages = append(pages, at)
		}
		nodes, known, err := nodesOf(pages)
		if err != nil {
			return Residency{}, fmt.Errorf("reading the NUMA nodes of %d bytes: %w", len(b), err)
		}
		if !known {
			return Residency{}, nil
		}
		for _, node := range nodes {
			if node >= 0 {
				r.Pages[int(node)]++
			} else {
				r.Absent++
			}
		}
	}
	return r, nil
}

// nodesOf returns the node of each page, or -1 for a page that is not faulted in (or swapped out).
// In a sandbox that forbids the system call, known is false and all nodes are -1.
func nodesOf(pages []uintptr) (nodes []int32, known bool, err error) {
	nodes = make([]int32, len(pages))
	for lo := 0; lo < len(pages); lo += residencyBatch {
		hi := min(lo+residencyBatch, len(pages))
		_, _, errno := unix.Syscall6(unix.SYS_MOVE_PAGES, 0, uintptr(hi-lo), uintptr(unsafe.Pointer(&pages[lo])), 0,
			uintptr(unsafe.Pointer(&nodes[lo])), 0)
		if errno == unix.EPERM || errno == unix.ENOSYS {
			for i := range nodes {
				nodes[i] = -1
			}
			return nodes, false, nil
		}
		if errno != 0 {
			return nil, false, errno
		}
	}
	for i, n := range nodes {
		switch {
		case n >= 0:
		case unix.Errno(-n) == unix.ENOENT, unix.Errno(-n) == unix.EFAULT: // never touched; the shared zero page
			nodes[i] = -1
		case unix.Errno(-n) == unix.EACCES:
			return nil, false, errors.New("the pages are mapped by several processes; run as root to read their " +
				"placement")
		default:
			return nil, false, unix.Errno(-n)
		}
	}
	return nodes, true, nil
}
