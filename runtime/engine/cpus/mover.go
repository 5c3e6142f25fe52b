package cpus

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"sandwich/profiles"
	"sandwich/profiles/occupancy"
	"sandwich/runtime/pool"
)

const (
	// A worker is crowded in an interval if it waited for its PU, and other threads used that PU,
	// for at least these shares of the interval.
	crowdedWait  = 0.15
	crowdedOther = 0.15

	firstPatience = 2  // crowded intervals before the first move of a worker
	maxPatience   = 64 // limit of crowded intervals before later moves
	calmIntervals = 60 // intervals without crowding that reset the patience
	boundEvery    = 16 // intervals between two scans of the threads of all processes
)

// Mover moves workers away from PUs that other threads use, to idle PUs. It compares the scheduling
// statistics of the workers with the load of their PUs. Several instances may move to the same PU
// at the same time, so the delay before a move has a random part that grows with each move. Its
// methods are called by one goroutine.
type Mover struct {
	monitor occupancy.Monitor
	profile *profiles.Profile
	pool    threads
	random  func(n int) int // from 0 to n-1

	looked  time.Time
	waits   []pool.Wait
	workers []crowding
}

// threads are the methods of *pool.Pool that a Mover uses.
type threads interface {
	Waits() []pool.Wait
	Move(worker, pu int) error
}

// crowding is the history of one worker.
type crowding struct {
	crowded  int // intervals in a row
	calm     int // intervals in a row
	patience int // crowded intervals before a move: base plus a random part
	base     int
}

// NewMover returns a mover of the workers of a pool, nil without a monitor or a profile. A nil
// mover moves no workers.
func NewMover(monitor occupancy.Monitor, profile *profiles.Profile, p threads) *Mover {
	if monitor == nil || profile == nil {
		return nil
	}
	return &Mover{monitor: monitor, profile: profile, pool: p, random: rand.IntN}
}

// Look moves crowded workers and returns a sentence for each move. It is called once per interval
// with the PU of each worker and the PUs that the process may use.
func (m *Mover) Look(now time.Time, at, allowed []int) (notes []string) {
	if m == nil {
		return nil
	}
	waits := m.pool.Waits()
	elapsed := now.Sub(m.looked)
	before := m.waits
	m.looked, m.waits = now, waits
	load := m.monitor.Load()
	if len(waits) != len(at) || len(before) != len(at) || elapsed <= 0 {
		m.workers = make([]crowding, len(at))
		for i := range m.workers {
			m.workers[i].settle(firstPatience, m.random)
		}
		return nil
	}
	at = slices.Clone(at)
	for i := range m.workers {
		ran := float64(waits[i].Ran-before[i].Ran) / float64(elapsed)
		waited := float64(waits[i].Waited-before[i].Waited) / float64(elapsed)
		w := &m.workers[i]
		if !w.note(waited >= crowdedWait && load[at[i]]-ran >= crowdedOther, m.random) {
			continue
		}
		to, ok := m.spare(i, at, allowed, load)
		if !ok && (w.crowded-w.patience)%boundEvery == 0 {
			to, ok = m.unbound(i, at, allowed)
		}
		ok = ok && m.move(i, at[i], to)
		if !ok {
			continue // Look tries again in the next interval
		}
		notes = append(notes, fmt.Sprintf("PU %d is shared with other threads: worker %d moved to PU %d", at[i], i, to))
		at[i] = to
		w.settle(min(2*w.base, maxPatience), m.random)
	}
	return notes
}

// spare reserves an idle PU for a worker, given the load of the PUs.
func (m *Mover) spare(worker int, at, allowed []int, load map[int]float64) (to int, ok bool) {
	used := profiles.PULoad{}
	maps.Copy(used, load)
	for {
		to, ok = m.profile.SparePU(at[worker], at, allowed, used)
		if !ok || m.monitor.Hold(to) {
			return to, ok
		}
		used[to]++
	}
}

// unbound reserves a PU for a worker when every PU is in use and another thread is bound to the
// worker's PU. It chooses a PU to which no thread is bound, since the threads that run there can be
// migrated.
func (m *Mover) unbound(worker int, at, allowed []int) (to int, ok bool) {
	load := map[int]float64{}
	for pu, other := range m.monitor.Bound() {
		if other {
			load[pu] = 1
		}
	}
	if load[at[worker]] == 0 {
		return 0, false
	}
	return m.spare(worker, at, allowed, load)
}

// move binds a worker to a reserved PU and releases the PU that it leaves. If binding fails, it
// releases the reserved PU and returns false.
func (m *Mover) move(worker, from, to int) bool {
	if err := m.pool.Move(worker, to); err != nil {
		m.monitor.Release(to)
		return false
	}
	m.monitor.Release(from)
	return true
}

// note records an interval and reports whether the worker should move.
func (w *crowding) note(crowded bool, random func(int) int) bool {
	if !crowded {
		w.crowded = 0
		if w.calm++; w.calm == calmIntervals && w.base > firstPatience {
			w.settle(firstPatience, random)
		}
		return false
	}
	w.calm = 0
	w.crowded++
	return w.crowded >= w.patience
}

// settle resets the history and sets a random patience from base to 2*base intervals.
func (w *crowding) settle(base int, random func(int) int) {
	*w = crowding{base: base, patience: base + random(base+1)}
}
