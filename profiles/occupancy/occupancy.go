// Package occupancy measures which PUs of this machine are in use and reserves PUs among the
// instances of this program, so that two of them do not choose the same ones while others idle.
package occupancy

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"time"
)

// Monitor reports which PUs are in use and reserves PUs for this process. Methods may be called
// concurrently.
type Monitor interface {
	// Load returns the fraction of time, 0 to 1, for which each PU was busy since the last call.
	// The first call measures for a fraction of a second. The caller owns the map; it is empty if
	// usage is unknown.
	Load() map[int]float64

	// Bound returns the PUs to which a running thread of another process is bound. It reads the
	// state of every thread of the machine.
	Bound() map[int]bool

	// Hold reserves a PU and reports whether no other process holds it. A PU that this process
	// holds stays reserved. If reservations are impossible, every PU is granted.
	Hold(pu int) bool

	// Release ends a reservation. All reservations end with the process.
	Release(pu int)
}

// System is the Monitor of the machine that this process runs on.
type System struct {
	root    fs.FS
	folders []string
	wait    func(time.Duration)
	self    int // process ID

	mu    sync.Mutex
	last  times
	load  map[int]float64
	locks *locks
	held  map[int]bool
}

// window is the duration of the first measurement of Load. The kernel counts in ticks of 10 ms.
const window = 200 * time.Millisecond

// minTicks is the minimum time between two compared readings, in kernel ticks.
const minTicks = 10

// New returns the Monitor of this machine. Reservations are locks in a file of the first of
// the folders in which one can be made.
func New(folders []string) *System {
	return &System{root: os.DirFS("/"), folders: folders, wait: time.Sleep, self: os.Getpid(),
		held: map[int]bool{}}
}

// Load implements Monitor.
func (s *System) Load() map[int]float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		if s.last = readTimes(s.root); len(s.last) == 0 {
			return map[int]float64{}
		}
		s.wait(window)
	}
	now := readTimes(s.root)
	out := map[int]float64{}
	short := false
	for pu, t := range now {
		before, known := s.last[pu]
		total := t.total - before.total
		switch {
		case !known || t.busy < before.busy:
		case total < minTicks:
			short = true
		default:
			out[pu] = min(1, (t.busy-before.busy)/total)
		}
	}
	if short && len(out) == 0 && s.load != nil {
		return maps.Clone(s.load) // asked again at once
	}
	s.last, s.load = now, out
	return maps.Clone(out)
}

// Bound implements Monitor.
func (s *System) Bound() map[int]bool {
	out := map[int]bool{}
	for pu, processes := range BoundThreads(s.root, "") {
		out[pu] = slices.ContainsFunc(processes, func(p Process) bool { return p.ID != s.self })
	}
	return out
}

// Hold implements Monitor.
func (s *System) Hold(pu int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.locks == nil && len(s.folders) > 0 {
		s.locks, _ = openLocks(s.folders[0]) // where that fails the next folder is tried
		s.folders = s.folders[1:]
	}
	if s.held[pu] || s.locks == nil {
		return true
	}
	err := s.locks.hold(pu)
	s.held[pu] = err == nil
	return !errors.Is(err, errTaken)
}

var errTaken = errors.New("another process holds the lock")

// Release implements Monitor.
func (s *System) Release(pu int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[pu] {
		s.locks.release(pu)
		delete(s.held, pu)
	}
}
