package pool

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// teams is a relay whose cells belong to groups of workers. In even steps a group reads only its
// own cells and waits for no other group; after the step they meet by a flag. In odd steps they
// read the cells of other groups.
type teams struct {
	*relay
	grouping *Grouping
	sizes    []int
	counts   [2][]Counter // of each group
	arrived  []atomic.Int32
	met      *Flags
}

func newTeams(t *testing.T, p *Pool, sizes []int, cells, steps, chunk int) *teams {
	t.Helper()
	r := &teams{relay: newRelay(p, cells, steps, chunk), sizes: sizes, arrived: make([]atomic.Int32, steps),
		met: p.NewFlags(1)}
	groups, next := make([][]int, len(sizes)), 0
	for g, n := range sizes {
		for range n {
			groups[g], next = append(groups[g], next), next+1
		}
	}
	r.adjacent = func(step, i int) int {
		for g := range sizes {
			if lo, hi := Split(cells, len(sizes), g, 1); step%2 == 0 && i+1 == hi {
				return lo
			}
		}
		return (i + 1) % cells
	}
	var err error
	if r.grouping, err = p.NewGrouping(groups); err != nil {
		t.Fatal(err)
	}
	for half := range r.counts {
		r.counts[half] = make([]Counter, len(sizes))
		for g := range r.counts[half] {
			r.counts[half][g].List = uint8(g)
		}
	}
	return r
}

func (r *teams) fill() {
	r.relay.fill()
	for i := range r.arrived {
		r.arrived[i].Store(0)
	}
}

func (r *teams) run(w *Worker) {
	w.Use(r.grouping)
	first, back := w.Resumed()
	if !back {
		first = 0
	}
	for s := first; s < r.steps; s++ {
		r.each(w, func(g, lo, n int) { r.read(w, s, &r.counts[0][g], lo, n) })
		if s%2 == 0 {
			w.LocalBarrier()
		} else {
			w.Barrier()
		}
		r.each(w, func(g, lo, n int) { r.add(w, s, &r.counts[1][g], lo, n) })
		if w.Tolerant() || s%2 == 1 {
			w.BarrierTo(s+1, nil)
			continue
		}
		number := w.Run()<<16 | uint64(s)
		if int(r.arrived[s].Add(1)) == w.N() {
			w.CheckRisk(s + 1)
			r.met.Raise(0, number)
		}
		r.met.Wait(w, 0, number)
		w.Met()
	}
}

// each runs a function for the cells of the worker's group, and in preemption-tolerant mode for
// those of the others too.
func (r *teams) each(w *Worker, half func(g, lo, n int)) {
	home, visits := w.Group().ID(), 1
	if w.Tolerant() {
		visits = len(r.sizes)
	}
	for k := range visits {
		g := (home + k) % len(r.sizes)
		lo, hi := Split(len(r.cells), len(r.sizes), g, 1)
		half(g, lo, hi-lo)
	}
}

func TestGroupsCommitEveryChunkOnceWithLosses(t *testing.T) {
	runs := 60
	if testing.Short() {
		runs = 20
	}
	for i, sizes := range [][]int{{1, 1}, {2, 2}, {1, 1, 1, 1}, {2, 1}} {
		n := 0
		for _, size := range sizes {
			n += size
		}
		p := tolerantPool(t, n, fmt.Sprintf("%d:6%%:300us", i))
		r := newTeams(t, p, sizes, 23, 12, 2)
		for run := range runs {
			r.fill()
			p.RunTolerant(r.run)
			r.check(t, fmt.Sprintf("groups of %v, run %d", sizes, run))
		}
		if s := totals(p); s.Taken == 0 || s.Left == 0 {
			t.Errorf("groups of %v: no chunk was reclaimed: %+v", sizes, s)
		}
	}
}

// TestALoneWorkersGroupIsHelped checks that other groups finish the run if the only worker of a
// group is descheduled for much longer than the run takes.
func TestALoneWorkersGroupIsHelped(t *testing.T) {
	p := tolerantPool(t, 2, "1:0%:1ms")
	for lost := range 2 {
		r := newTeams(t, p, []int{1, 1}, 12, 6, 2)
		r.lose = func(w *Worker, step int) {
			switch {
			case step != 1:
			case w.Index() == lost:
				time.Sleep(50 * time.Millisecond)
			default: // so that the other one has something to be lost with
				time.Sleep(300 * time.Microsecond)
			}
		}
		taken, tries := totals(p).Taken, 0
		for ; totals(p).Taken == taken && tries < 20; tries++ {
			r.fill()
			p.RunTolerant(r.run)
			r.check(t, fmt.Sprint("without worker ", lost))
			p.Gather()
		}
		if tries == 20 {
			t.Errorf("without worker %d no chunk was reclaimed: %+v", lost, totals(p))
		}
	}
}

// TestGroupsStartTolerantModeWithinARun checks that a run of groups enters preemption-tolerant mode
// where they meet by flags or at a barrier.
func TestGroupsStartTolerantModeWithinARun(t *testing.T) {
	p := open(t, 3, Options{})
	r := newTeams(t, p, []int{1, 2}, 16, 20, 1)
	for at := range 16 {
		p.risk.Store(0)
		r.fill()
		r.lose = func(w *Worker, step int) {
			if w.Index() == 1 && step == at+2 {
				time.Sleep(time.Millisecond)
			}
		}
		p.RunTolerant(func(w *Worker) {
			if _, back := w.Resumed(); !back && w.Index() == 1 {
				w.riskUntil = p.now() + time.Minute
				p.risk.Store(int64(w.riskUntil))
			}
			r.run(w)
		})
		r.check(t, fmt.Sprint("raised ", at))
		p.Gather()
		if !p.tolerant {
			t.Fatal("preemption-tolerant mode did not start")
		}
	}
	if s := totals(p); s.Private == 0 {
		t.Error("no chunk was private")
	}
}

// TestUndisturbedGroups checks that without losses groups wait only for their own workers, and no
// chunk is private or computed twice.
func TestUndisturbedGroups(t *testing.T) {
	p := open(t, 4, Options{Spin: NoSpin})
	r := newTeams(t, p, []int{2, 2}, 40, 10, 3)
	for range 30 {
		r.fill()
		p.RunTolerant(r.run)
		r.check(t, "undisturbed")
	}
	if s := totals(p); s != (WorkerStats{}) {
		t.Errorf("an undisturbed pool counted %+v", s)
	}
	var left []int
	for i := range r.arrived {
		left = append(left, int(r.arrived[i].Load()))
	}
	if want := slices.Repeat([]int{4, 0}, 5); !slices.Equal(left, want) {
		t.Errorf("who met by flags behind each step: %v, want %v", left, want)
	}
}
