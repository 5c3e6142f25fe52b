package sys

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// Delay reads how long a runnable thread has waited for a CPU: the second number of
// /proc/thread-self/schedstat, in nanoseconds. Involuntary context switches only count
// interruptions, including short ones by the kernel itself.
type Delay struct{ account }

// Open starts to watch the calling thread.
func (d *Delay) Open() {
	const numbers = 3 * 21 // each with a separator
	d.account = openAccount("/proc/thread-self/schedstat", numbers)
}

// Read returns how long the thread has waited since it started. ok is false if the kernel does not
// report it.
func (d *Delay) Read() (waited time.Duration, ok bool) { return parseDelay(d.text()) }

// ThreadWait returns how long a thread of this process has run since it started, and how long it
// was runnable while it waited for a CPU. ok is false if the kernel does not report it.
func ThreadWait(thread int) (ran, waited time.Duration, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/schedstat", thread))
	if err != nil {
		return 0, 0, false
	}
	return parseWait(text)
}

// parseWait returns the first two of three numbers of a schedstat file: nanoseconds on a CPU, of
// waiting for one, and time slices.
func parseWait(text []byte) (ran, waited time.Duration, ok bool) {
	waited, ok = parseDelay(text)
	first, _, _ := bytes.Cut(text, []byte(" "))
	n, err := strconv.ParseInt(string(first), 10, 64)
	return time.Duration(n), waited, ok && err == nil && n >= 0
}

// parseDelay returns the second of three numbers: time on a CPU, time of waiting for one, time
// slices.
func parseDelay(text []byte) (time.Duration, bool) {
	_, rest, _ := bytes.Cut(text, []byte(" "))
	number, _, found := bytes.Cut(rest, []byte(" "))
	n, err := strconv.ParseInt(string(number), 10, 64)
	return time.Duration(n), found && err == nil && n >= 0
}
