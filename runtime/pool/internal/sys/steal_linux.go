package sys

import (
	"bytes"
	"fmt"
	"strconv"
	"time"
)

// Steal reads the time that a hypervisor took from a PU: the eighth number of its line in
// /proc/stat, in hundredths of a second. The clocks of a thread are more precise, but only for
// intervals in which it did not sleep, and the start of such an interval would cost a system call
// at every barrier.
type Steal struct {
	account
	path   string
	pu     int
	name   []byte
	before time.Duration // value of the last read
	looked time.Duration // time of the last read
}

// stealEvery is the least time between two reads: the unit is 10 ms, and the file is long on
// machines with many PUs.
const stealEvery = 100 * time.Millisecond

// ProcStat is the file with the time that each PU spent in each state.
const ProcStat = "/proc/stat"

// Open starts to watch a PU.
func (s *Steal) Open(path string, pu int) {
	const line = 8 + 10*21 // a name and ten numbers, at most
	*s = Steal{account: openAccount(path, (pu+2)*line), path: path, pu: pu, name: fmt.Appendf(nil, "cpu%d ", pu)}
	s.before, _ = s.Read()
}

// Follow watches another PU from now on, after the worker was moved.
func (s *Steal) Follow(pu int) {
	if s.fd == 0 || s.pu == pu {
		return
	}
	s.Close()
	s.Open(s.path, pu)
}

// Since returns the time that was taken since the last read, or 0 if stealEvery has not passed.
func (s *Steal) Since(now time.Duration) time.Duration {
	if s.fd == 0 || now-s.looked < stealEvery {
		return 0
	}
	s.looked = now
	taken, ok := s.Read()
	if !ok {
		return 0
	}
	more := taken - s.before
	s.before = taken
	return max(0, more)
}

func (s *Steal) Read() (time.Duration, bool) { return parseSteal(s.text(), s.name) }

// parseSteal returns the eighth number of the line that begins with a name and a space.
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
