//go:build !linux

package server

import "time"

// hasRequest takes a connection that is new, or has just had its answer, for one
// whose next request lies unread.
func (c *conn) hasRequest() bool { return time.Since(c.since) < soon }
