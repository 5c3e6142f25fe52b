//go:build !linux

package conntable

import "time"

// hasRequest reports whether bytes of the client may be unread: where the system does not tell, for
// a moment after the connection became idle.
func (c *Conn) hasRequest() bool { return time.Since(c.since) < 100*time.Millisecond }
