package pool

import "golang.org/x/sys/unix"

// account is a small file of /proc that is read again and again, without allocating.
type account struct {
	fd  int // 0: not open
	buf []byte
}

// openAccount opens a file of which size bytes are read. Where the kernel keeps no such account
// nothing is read later.
func openAccount(path string, size int) account {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil || fd <= 0 {
		return account{}
	}
	return account{fd, make([]byte, size)}
}

func (a *account) close() {
	if a.fd > 0 {
		unix.Close(a.fd)
		a.fd = 0
	}
}

// text is what the file says now; nil where it cannot be read.
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
