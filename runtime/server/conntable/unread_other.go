//go:build !linux

package conntable

import "time"

// hasUnread reports whether the socket may have unread bytes: if the system does not tell, for a
// moment after the connection became idle.
func (c *Conn) hasUnread() bool {
	return c.state == stateIdle && time.Since(c.since) < 100*time.Millisecond
}
