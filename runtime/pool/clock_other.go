//go:build !linux

package pool

import "time"

var programStart = time.Now()

// ThreadTime stands in for the processor time of the calling thread, which only Linux is asked for.
func ThreadTime() time.Duration { return time.Since(programStart) }
