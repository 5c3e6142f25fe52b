package pool

import (
	"bytes"
	"fmt"
	"strconv"
	"time"
)

// steal reads what a hypervisor has taken of a PU: the eighth number of its line in /proc/stat, in
// hundredths of a second. A thread's own clock says it finer, as wall time that was neither its
// time on the CPU nor its wait for it, but only of spans in which it never slept, and to know where
// such a span begins would cost workers a system call at every barrier.
type steal struct {
	account
	path   string
	pu     int
	name   []byte
	before time.Duration // what it said at the last look
	looked time.Duration // when that was
}

// stealEvery is the least time between two looks: it counts in steps of 10 ms, and the file is long
// where there are many PUs.
const stealEvery = 100 * time.Millisecond

// procStat is where the kernel says what became of the time of each PU.
const procStat = "/proc/stat"

// open begins to watch a PU.
func (s *steal) open(path string, pu int) {
	const line = 8 + 10*21 // a name and ten numbers, at most
	*s = steal{account: openAccount(path, (pu+2)*line), path: path, pu: pu, name: fmt.Appendf(nil, "cpu%d ", pu)}
	s.before, _ = s.read()
}

// follow watches another PU from now on, where the worker was moved to it.
func (s *steal) follow(pu int) {
	if s.fd == 0 || s.pu == pu {
		return
	}
	s.close()
	s.open(s.path, pu)
}

// since is what was taken since the last look; 0 where that was only just now.
func (s *steal) since(now time.Duration) time.Duration {
	if s.fd == 0 || now-s.looked < stealEvery {
		return 0
	}
	s.looked = now
	taken, ok := s.read()
	if !ok {
		return 0
	}
	more := taken - s.before
	s.before = taken
	return max(0, more)
}

func (s *steal) read() (time.Duration, bool) { return parseSteal(s.text(), s.name) }

// parseSteal takes the eighth number of the line that begins with a name and a space.
func parseSteal(text, name []byte) (time.Duration, bool) {
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte("\n"))
		numbers, found := bytes.CutPrefix(line, name)
		if !found {
			continue
		}
		for range 7 {
			_, numbers, _ = bytes.Cut(numbers, []byte(" "))
		}
		number, _, _ := bytes.Cut(numbers, []byte(" "))
		n, err := strconv.ParseInt(string(number), 10, 64)
		if err != nil || n < 0 || n > 1<<39 { // hundredths: that is 174 years
			return 0, false
		}
		return time.Duration(n) * (time.Second / 100), true
	}
	return 0, false
}
