package pool

import (
	"bytes"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// delay reads how long the kernel has let a thread wait for a CPU while it could have run: the
// second number of /proc/thread-self/schedstat, in nanoseconds. Involuntary context switches tell
// only that the thread was interrupted, be it for a tick's work of the kernel.
type delay struct {
	fd  int // 0: not open
	buf [96]byte
}

// open begins to watch the calling thread. Where the kernel keeps no such account nothing is read
// later.
func (d *delay) open() {
	if fd, err := unix.Open("/proc/thread-self/schedstat", unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil && fd > 0 {
		d.fd = fd
	}
}

func (d *delay) close() {
	if d.fd > 0 {
		unix.Close(d.fd)
		d.fd = 0
	}
}

// read is how long the thread has waited since it began.
func (d *delay) read() (waited time.Duration, ok bool) {
	if d.fd == 0 {
		return 0, false
	}
	n, err := unix.Pread(d.fd, d.buf[:], 0)
	if err != nil {
		return 0, false
	}
	return parseDelay(d.buf[:n])
}

// parseDelay takes the second of three numbers: time on a CPU, time in wait for one, turns.
func parseDelay(text []byte) (time.Duration, bool) {
	_, rest, _ := bytes.Cut(text, []byte(" "))
	number, _, found := bytes.Cut(rest, []byte(" "))
	n, err := strconv.ParseInt(string(number), 10, 64)
	return time.Duration(n), found && err == nil && n >= 0
}
