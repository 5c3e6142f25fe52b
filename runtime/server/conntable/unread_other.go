//go:build !linux

package conntable

import "time"

// unread reports whether the socket may have unread bytes that complete a header: if the system
// does not tell, for a moment after the connection became idle.
func (c *Conn) unread() (some, header bool) {
	some = c.state == stateIdle && time.Since(c.since) < 100*time.Millisecond
	return some, some
}
