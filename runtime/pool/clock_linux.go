package pool

import (
	"time"

	"golang.org/x/sys/unix"
)

// ThreadTime is the processor time of the calling thread, which profiles/calibrate and
// tuner/measure take differences of; 0 where the kernel does not say.
func ThreadTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
