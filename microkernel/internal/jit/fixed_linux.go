package jit

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapFixed maps the file, executable and read-only, over the given pages.
func mapFixed(pages []byte, fd int) error {
	addr := unsafe.Pointer(&pages[0])
	got, err := unix.MmapPtr(fd, 0, addr, uintptr(len(pages)), unix.PROT_READ|unix.PROT_EXEC,
		unix.MAP_SHARED|unix.MAP_FIXED)
	if err != nil {
		return err
	}
	if got != addr {
		return unix.EINVAL
	}
	return nil
}
