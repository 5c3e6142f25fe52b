package measure

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"sandwich/topotree"
)

// Others measures how much of some PUs other processes use, and a hypervisor for other machines:
// the busy time of a PU minus that of the threads of this process. If the kernel does not report
// these (no Linux, a sandbox), it reports no other use. `plan check --measure` uses it.
type Others struct {
	proc   string
	pus    topotree.CPUSet
	before ledger
}

// ledger is the kernel's accounting so far, in seconds.
type ledger struct {
	uptime  float64
	busy    map[int]float64 // by PU
	threads map[string]spent
}

// spent is the time of a thread, and the PU on which it last ran.
type spent struct {
	time float64
	pu   int
}

// WatchOthers starts watching some PUs. Threads that work meanwhile must exist until Share is
// called, because the time of an ended thread is not known.
func WatchOthers(pus topotree.CPUSet) *Others { return watchOthers("/proc", pus) }

func watchOthers(proc string, pus topotree.CPUSet) *Others {
	return &Others{proc, pus, readLedger(proc)}
}

// Share returns the largest fraction of a PU that others used since WatchOthers, 0 to 1. It does
// not exceed the fraction that others used of all PUs, because unpinned threads may have run on
// several.
func (o *Others) Share() float64 {
	after := readLedger(o.proc)
	taken, all := map[int]float64{}, 0.0
	for pu, busy := range after.busy {
		taken[pu] = busy - o.before.busy[pu]
		all += taken[pu]
	}
	for id, t := range after.threads {
		own := t.time - o.before.threads[id].time
		taken[t.pu] -= own
		all -= own
	}
	largest := 0.0
	for pu := range o.pus.All() {
		largest = max(largest, taken[pu])
	}
	wall := after.uptime - o.before.uptime
	if !(wall > 0) {
		return 0
	}
	return max(0, min(largest, all)/wall)
}

func readLedger(proc string) ledger {
	l := ledger{busy: map[int]float64{}, threads: map[string]spent{}}
	if f := fieldsOf(proc, "uptime"); len(f) > 0 {
		l.uptime = number(f[0])
	}
	text, _ := os.ReadFile(filepath.Join(proc, "stat"))
	for line := range strings.Lines(string(text)) {
		name, numbers, _ := strings.Cut(line, " ")
		pu, err := strconv.Atoi(strings.TrimPrefix(name, "cpu"))
		if f := strings.Fields(numbers); err == nil && strings.HasPrefix(name, "cpu") && len(f) >= statSteal+1 {
			for i, v := range f[:statSteal+1] {
				if i != statIdle && i != statWait {
					l.busy[pu] += number(v) / ticks
				}
			}
		}
	}
	tasks, _ := os.ReadDir(filepath.Join(proc, "self/task"))
	for _, t := range tasks {
		if f := fieldsOf(proc, filepath.Join("self/task", t.Name(), "stat")); len(f) > taskPU {
			l.threads[t.Name()] = spent{(number(f[taskUser]) + number(f[taskSystem])) / ticks, int(number(f[taskPU]))}
		}
	}
	return l
}

// Columns of /proc/stat after the name, columns of a thread's stat after its name in parentheses,
// and the ticks per second of both (proc(5); USER_HZ is 100 on all supported architectures).
const (
	statIdle, statWait, statSteal = 3, 4, 7
	taskUser, taskSystem, taskPU  = 11, 12, 36
	ticks                         = 100
)

// fieldsOf returns the words of a file after a name in parentheses, if there is one.
func fieldsOf(proc, name string) []string {
	text, _ := os.ReadFile(filepath.Join(proc, name))
	if i := bytes.LastIndexByte(text, ')'); i >= 0 {
		text = text[i+1:]
	}
	return strings.Fields(string(text))
}

// number parses a number, or returns 0.
func number(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v < 0 {
		return 0
	}
	return v
}
