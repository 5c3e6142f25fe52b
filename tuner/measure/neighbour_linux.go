package measure

import (
	"time"

	"golang.org/x/sys/unix"
)

// bindThread binds the calling thread to a PU.
func bindThread(pu int) error {
	var set unix.CPUSet
	set.Set(pu)
	return unix.SchedSetaffinity(0, &set)
}

// threadTime is the processor time of the calling thread.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
