package server

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// hasRequest tells whether bytes lie in the socket that nobody has read yet.
func (c *conn) hasRequest() (unread bool) {
	sc, ok := c.Conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	// Control does not wait for the Read that is under way.
	err = raw.Control(func(fd uintptr) {
		n, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
		unread = err == nil && n > 0
	})
	return err == nil && unread
}
