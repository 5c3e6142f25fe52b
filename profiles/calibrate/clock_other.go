//go:build !linux

package calibrate

import "time"

// threadTime is the processor time of the calling thread, which only Linux is asked for.
func threadTime() time.Duration { return 0 }
