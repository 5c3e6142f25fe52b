package pool

import (
	"bytes"
	"fmt"
	"os"
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

// threadWait returns what the kernel says of a thread of this process since that began.
func threadWait(thread int) (Wait, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/schedstat", thread))
	if err != nil {
		return Wait{}, false
	}
	return parseWait(text)
}

// parseWait takes the first two of three numbers of a schedstat file: nanoseconds on a CPU, in wait
// for one, and time slices.
func parseWait(text []byte) (Wait, bool) {
	waited, ok := parseDelay(text)
	first, _, _ := bytes.Cut(text, []byte(" "))
	ran, err := strconv.ParseInt(string(first), 10, 64)
	return Wait{time.Duration(ran), waited}, ok && err == nil && ran >= 0
}

// parseDelay takes the second of three numbers: time on a CPU, time in wait for one, turns.
func parseDelay(text []byte) (time.Duration, bool) {
	_, rest, _ := bytes.Cut(text, []byte(" "))
	number, _, found := bytes.Cut(rest, []byte(" "))
	n, err := strconv.ParseInt(string(number), 10, 64)
	return time.Duration(n), found && err == nil && n >= 0
}
