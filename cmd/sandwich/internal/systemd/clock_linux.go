package systemd

import "golang.org/x/sys/unix"

// monotonic returns CLOCK_MONOTONIC in microseconds; 0 if it cannot be read.
func monotonic() int64 {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) != nil {
		return 0
	}
	return now.Nano() / 1000
}
