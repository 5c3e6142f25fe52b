package conntable

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// hasUnread reports whether the socket has unread bytes.
func (c *Conn) hasUnread() (unread bool) {
	sc, ok := c.Conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	// Control does not wait for a pending Read.
	err = raw.Control(func(fd uintptr) {
		n, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
		unread = err == nil && n > 0
	})
	return err == nil && unread
}
