//go:build !linux

package sys

import "time"

var programStart = time.Now()

// ThreadTime returns the time since the program started, in place of the processor time of the
// thread.
func ThreadTime() time.Duration { return time.Since(programStart) }
