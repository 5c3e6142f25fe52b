package jit

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

var pageSize = os.Getpagesize()

// reserve reserves address space without memory.
func reserve(n int) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, n, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("reserve %d bytes of address space for generated code: %w", n, err)
	}
	return mem, nil
}

func release(mem []byte) error { return unix.Munmap(mem) }

// seal fills pages with image and makes them executable: first by writing and then protecting them,
// and where that is forbidden (PR_SET_MDWE, SELinux execmem) by mapping a memfd that holds the
// image over them.
func seal(pages, image []byte) error {
	if err := unix.Mprotect(pages, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		return fmt.Errorf("%w: mprotect: %w", ErrNoExec, err)
	}
	copy(pages, image)
	if err := unix.Mprotect(pages, unix.PROT_READ|unix.PROT_EXEC); err != nil {
		if ferr := sealMemfd(pages, image); ferr != nil {
			return fmt.Errorf("%w: mprotect: %w; memfd: %w", ErrNoExec, err, ferr)
		}
	}
	syncCode(pages)
	return nil
}

// sealMemfd maps an executable, read-only view of an anonymous file over pages.
func sealMemfd(pages, image []byte) error {
	fd, err := unix.MemfdCreate("sandwich-kernels", unix.MFD_CLOEXEC|unix.MFD_EXEC)
	if err == unix.EINVAL { // before Linux 6.3 there is no MFD_EXEC and every memfd may be executed
		fd, err = unix.MemfdCreate("sandwich-kernels", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }() // the mapping holds the file
	for done := 0; done < len(image); {
		n, err := unix.Pwrite(fd, image[done:], int64(done))
		if err != nil {
			return err
		}
		done += n
	}
	return mapFixed(pages, fd)
}
