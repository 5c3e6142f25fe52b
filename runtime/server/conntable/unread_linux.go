package conntable

import (
	"bytes"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxPeek is the number of unread bytes in which unread looks for the end of a header. More unread
// bytes count as a complete header.
const maxPeek = 4096

// unread reports whether the socket has unread bytes, and whether they complete a header.
func (c *Conn) unread() (some, header bool) {
	sc, ok := c.Conn.(syscall.Conn)
	if !ok {
		return false, false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false, false
	}
	// Control does not wait for a pending Read.
	_ = raw.Control(func(fd uintptr) {
		var peeked [maxPeek]byte
		n, _, err := unix.Recvfrom(int(fd), peeked[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		if some = err == nil && n > 0; some {
			header = n == maxPeek || endsHeader(peeked[:n])
		}
	})
	return some, header
}

// endsHeader reports whether text has the empty line that ends a header.
func endsHeader(text []byte) bool {
	return bytes.Contains(text, []byte("\n\r\n")) || bytes.Contains(text, []byte("\n\n"))
}
