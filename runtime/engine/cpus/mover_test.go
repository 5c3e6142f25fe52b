package cpus

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"sandwich/profiles"
	"sandwich/runtime/pool"
	"sandwich/topotree/hwloc"
)

// world is a machine on which some processes have their workers bound to PUs, in whole intervals of
// a second. Threads on one PU share it evenly.
type world struct {
	movers []*Mover
	at     [][]int         // PU of each worker, by process
	other  map[int]float64 // load of a PU by what is bound there and wants that share of it
	bound  []int           // PUs to which a thread that is no worker is bound
	held   map[int]int     // process that holds a PU
	blind  bool            // processes do not see the reservations of others
	waits  [][]pool.Wait
	busy   map[int]float64
	now    time.Time
	refuse bool // the system refuses to bind
}

// member is a process of a world, as its mover sees it.
type member struct {
	*world
	id int
}

func (m member) Load() map[int]float64 {
	out := map[int]float64{}
	for pu, share := range m.busy {
		out[pu] = share
	}
	return out
}

func (m member) Bound() map[int]bool {
	out := map[int]bool{}
	for _, pu := range m.bound {
		out[pu] = true
	}
	for id, pus := range m.at {
		for _, pu := range pus {
			out[pu] = out[pu] || id != m.id
		}
	}
	return out
}

func (m member) Hold(pu int) bool {
	if m.blind {
		return true
	}
	if by, held := m.held[pu]; held && by != m.id {
		return false
	}
	m.held[pu] = m.id
	return true
}

func (m member) Release(pu int) {
	if m.held[pu] == m.id {
		delete(m.held, pu)
	}
}

func (m member) Waits() []pool.Wait { return slices.Clone(m.waits[m.id]) }

func (m member) Move(worker, pu int) error {
	if m.refuse {
		return errors.New("refused")
	}
	m.at[m.id][worker] = pu
	return nil
}

func newWorld(t *testing.T, machine string, at ...[]int) *world {
	t.Helper()
	m, err := hwloc.ReadSynthetic(machine)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{at: at, other: map[int]float64{}, held: map[int]int{}, now: time.Unix(0, 0)}
	for id, pus := range at {
		w.waits = append(w.waits, make([]pool.Wait, len(pus)))
		mine := member{w, id}
		seed := id // processes draw different numbers
		w.movers = append(w.movers, &Mover{monitor: mine, profile: profiles.New(m, profiles.Identity{}), pool: mine,
			random: func(n int) int { seed++; return seed % n }})
		for _, pu := range pus {
			mine.Hold(pu)
		}
	}
	return w
}

// pass lets an interval pass in which every worker wants its whole PU; all look at its end.
func (w *world) pass(allowed []int) (notes []string) {
	workers := map[int]int{}
	for _, pus := range w.at {
		for _, pu := range pus {
			workers[pu]++
		}
	}
	w.busy = map[int]float64{}
	for pu, share := range w.other {
		w.busy[pu] = share
	}
	for id, pus := range w.at {
		for i, pu := range pus {
			ran := 1 / (float64(workers[pu]) + w.other[pu])
			w.busy[pu] = 1
			w.waits[id][i].Ran += time.Duration(ran * float64(time.Second))
			w.waits[id][i].Waited += time.Duration((1 - ran) * float64(time.Second))
		}
	}
	w.now = w.now.Add(time.Second)
	for id, m := range w.movers {
		notes = append(notes, m.Look(w.now, slices.Clone(w.at[id]), allowed)...)
	}
	return notes
}

// TestCrowdedWorkersMove lets processes with workers on the same PUs run on: within 30 intervals
// each worker has a PU of its own where there are enough, and stays there.
func TestCrowdedWorkersMove(t *testing.T) {
	type loads = map[int]float64
	for _, c := range []struct {
		name    string
		machine string
		at      [][]int
		other   map[int]float64
		bound   []int
		blind   bool
		allowed []int
		want    [][]int // nil: any, as long as none shares a PU
	}{
		{"two on one of two PUs", "core:2", [][]int{{0}, {0}}, nil, nil, false, []int{0, 1}, nil},
		{"two that see no reservations", "core:2", [][]int{{0}, {0}}, nil, nil, true, []int{0, 1}, nil},
		{"three on one of four PUs", "core:4", [][]int{{0}, {0}, {0}}, nil, nil, true, []int{0, 1, 2, 3}, nil},
		{"two teams of two", "core:4", [][]int{{0, 1}, {0, 1}}, nil, nil, false, []int{0, 1, 2, 3}, nil},
		{"a program of another kind", "core:4", [][]int{{1}}, loads{1: 1, 0: 1}, nil, false, []int{0, 1, 2, 3},
			[][]int{{2}}},
		{"close is better", "l3:2 core:4", [][]int{{5}}, loads{5: 1}, nil, false, []int{0, 1, 2, 3, 4, 5, 6, 7},
			[][]int{{4}}},
		{"no other PU is allowed", "core:4", [][]int{{1}}, loads{1: 1}, nil, false, []int{1}, [][]int{{1}}},
		{"every PU is in use", "core:2", [][]int{{0}}, loads{0: 1, 1: 0.5}, nil, false, []int{0, 1}, [][]int{{0}}},
		{"two on one of two busy PUs", "core:2", [][]int{{0}, {0}}, loads{0: 0.5, 1: 0.9}, nil, false,
			[]int{0, 1}, nil},
		{"every PU is busy, and others are bound there", "core:2", [][]int{{0}}, loads{0: 1, 1: 1},
			[]int{0, 1}, false, []int{0, 1}, [][]int{{0}}},
		{"every PU is busy, and others are bound elsewhere", "core:2", [][]int{{0}}, loads{0: 1, 1: 1},
			[]int{1}, false, []int{0, 1}, [][]int{{0}}},
		{"a sibling of its own core", "core:2 pu:2", [][]int{{0, 2}}, loads{0: 1}, nil, false, []int{0, 1, 2, 3},
			[][]int{{0, 2}}},
		{"a little other work", "core:2", [][]int{{0}}, loads{0: 0.1}, nil, false, []int{0, 1}, [][]int{{0}}},
		{"alone", "core:2", [][]int{{0}, {1}}, nil, nil, false, []int{0, 1}, [][]int{{0}, {1}}},
	} {
		w := newWorld(t, c.machine, c.at...)
		w.blind, w.bound = c.blind, c.bound
		for pu, share := range c.other {
			w.other[pu] = share
		}
		for range 30 {
			w.pass(c.allowed)
		}
		settled := make([][]int, len(w.at))
		seen := map[int]bool{}
		for id, pus := range w.at {
			settled[id] = slices.Clone(pus)
			for _, pu := range pus {
				if seen[pu] && c.want == nil {
					t.Errorf("%s: PU %d is shared: %v", c.name, pu, w.at)
				}
				seen[pu] = true
			}
		}
		if c.want != nil && !slices.EqualFunc(settled, c.want, slices.Equal[[]int]) {
			t.Errorf("%s: workers are on %v, want %v", c.name, settled, c.want)
		}
		for range 10 {
			if notes := w.pass(c.allowed); len(notes) > 0 {
				t.Errorf("%s: it does not come to rest: %q", c.name, notes)
			}
		}
	}
}

// TestMoveIsReported checks that a move is reported once, changes the reservation, and is not made
// if the system refuses it.
func TestMoveIsReported(t *testing.T) {
	w := newWorld(t, "core:4", []int{1})
	w.other[1] = 1
	w.refuse = true
	for range 20 {
		if notes := w.pass([]int{0, 1, 2, 3}); len(notes) > 0 {
			t.Fatalf("notes %q of moves that were refused", notes)
		}
	}
	if len(w.held) != 1 || w.at[0][0] != 1 {
		t.Errorf("after refusals the worker is on PU %d and holds %v", w.at[0][0], w.held)
	}
	w.refuse = false
	notes := w.pass([]int{0, 1, 2, 3})
	if len(notes) != 1 || !strings.Contains(notes[0], "PU 1 is shared") || !strings.Contains(notes[0], "to PU 0") {
		t.Errorf("notes %q", notes)
	}
	if _, held := w.held[1]; held || len(w.held) != 1 {
		t.Errorf("reservations after the move: %v", w.held)
	}
}

// TestThrottledWorkersStay checks that waiting alone moves no worker: under a CPU quota a thread
// waits while its PU is idle. No worker is moved either if the kernel reports no waiting times.
func TestThrottledWorkersStay(t *testing.T) {
	w := newWorld(t, "core:2", []int{0})
	for range 20 {
		w.now = w.now.Add(time.Second)
		w.waits[0][0].Ran += time.Second / 2
		w.waits[0][0].Waited += time.Second / 2
		w.busy = map[int]float64{0: 0.5}
		if notes := w.movers[0].Look(w.now, w.at[0], []int{0, 1}); len(notes) > 0 {
			t.Fatalf("a throttled worker: %q", notes)
		}
	}
	w.other[0] = 1
	w.waits[0] = nil
	for range 20 {
		w.now = w.now.Add(time.Second)
		w.busy = map[int]float64{0: 1}
		if notes := w.movers[0].Look(w.now, w.at[0], []int{0, 1}); len(notes) > 0 {
			t.Fatalf("without figures of the threads: %q", notes)
		}
	}
	if NewMover(nil, nil, nil).Look(w.now, nil, nil) != nil {
		t.Error("an engine without a monitor moves workers")
	}
}
