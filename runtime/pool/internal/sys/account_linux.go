package sys

import "golang.org/x/sys/unix"

// account is a small file of /proc that is read repeatedly without allocation.
type account struct {
	fd  int // 0: not open
	buf []byte
}

// openAccount opens a file of which size bytes are read. If the kernel has no such file, nothing is
// read later.
func openAccount(path string, size int) account {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil || fd <= 0 {
		return account{}
	}
	return account{fd, make([]byte, size)}
}

func (a *account) Close() {
	if a.fd > 0 {
		unix.Close(a.fd)
		a.fd = 0
	}
}

// text returns the current content, or nil if it cannot be read.
func (a *account) text() []byte {
	if a.fd == 0 {
		return nil
	}
	n, err := unix.Pread(a.fd, a.buf, 0)
	if err != nil {
		return nil
	}
	return a.buf[:n]
}
