//go:build !linux

package pool

import "time"

// delay is not known on this system.
type delay struct{}

func (*delay) open()                       {}
func (*delay) close()                      {}
func (*delay) read() (time.Duration, bool) { return 0, false }
