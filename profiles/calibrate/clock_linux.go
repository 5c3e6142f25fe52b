package calibrate

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is the processor time of the calling thread; 0 where the system does not say.
func threadTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
