package measure

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Others watches how much of some PUs other processes take, and a hypervisor for other machines:
// what the kernel says that a PU was busy, less what it says that threads of this process were.
// Where it says nothing (no Linux, a sandbox) nobody is seen. `plan check --measure` asks it.
type Others struct {
	proc   string
	pus    []int
	before ledger
}

// ledger is what the kernel booked so far, in seconds.
type ledger struct {
	uptime  float64
	busy    map[int]float64 // by PU
	threads map[string]spent
}

// spent is the time of a thread, and the PU that it was last on.
type spent struct {
	time float64
	pu   int
}

// WatchOthers begins to watch some PUs. The threads that work meanwhile must be there until Share
// is asked: what a thread did that has ended is no longer told apart.
func WatchOthers(pus []int) *Others { return watchOthers("/proc", pus) }

func watchOthers(proc string, pus []int) *Others {
	return &Others{proc, pus, readLedger(proc)}
}

// Share is the largest share of a PU that others took since WatchOthers, 0 to 1. Threads that are
// not bound may have been on several PUs, so that it is no more than others took of all.
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
	most := 0.0
	for _, pu := range o.pus {
		most = max(most, taken[pu])
	}
	wall := after.uptime - o.before.uptime
	if !(wall > 0) {
		return 0
	}
	return max(0, min(most, all)/wall)
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

// Columns of /proc/stat behind the name, of a thread's stat behind its name in brackets, and how
// many steps a second both count in (proc(5); USER_HZ is 100 on every architecture of ours).
const (
	statIdle, statWait, statSteal = 3, 4, 7
	taskUser, taskSystem, taskPU  = 11, 12, 36
	ticks                         = 100
)

// fieldsOf are the words of a file, without a name in brackets and what stands before it.
func fieldsOf(proc, name string) []string {
	text, _ := os.ReadFile(filepath.Join(proc, name))
	if i := bytes.LastIndexByte(text, ')'); i >= 0 {
		text = text[i+1:]
	}
	return strings.Fields(string(text))
}

// number is 0 of what is none.
func number(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v < 0 {
		return 0
	}
	return v
}
