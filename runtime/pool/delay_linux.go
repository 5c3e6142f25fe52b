package pool

import (
	"bytes"
	"strconv"
	"time"
)

// delay reads how long the kernel has let a thread wait for a CPU while it could have run: the
// second number of /proc/thread-self/schedstat, in nanoseconds. Involuntary context switches tell
// only that the thread was interrupted, be it for a tick's work of the kernel.
type delay struct{ account }

// open begins to watch the calling thread.
func (d *delay) open() {
	const numbers = 3 * 21 // with what stands behind each
	d.account = openAccount("/proc/thread-self/schedstat", numbers)
}

// read is how long the thread has waited since it began; not ok where the kernel does not say.
func (d *delay) read() (waited time.Duration, ok bool) { return parseDelay(d.text()) }

// parseDelay takes the second of three numbers: time on a CPU, time in wait for one, turns.
func parseDelay(text []byte) (time.Duration, bool) {
	_, rest, _ := bytes.Cut(text, []byte(" "))
	number, _, found := bytes.Cut(rest, []byte(" "))
	n, err := strconv.ParseInt(string(number), 10, 64)
	return time.Duration(n), found && err == nil && n >= 0
}
