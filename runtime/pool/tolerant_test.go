package pool

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

// relay is a preemption-tolerant run whose result requires that every chunk of every step was
// computed from the step before, in place and once: a cell of step s is made of two adjacent cells
// of step s-1.
type relay struct {
	cells, between []uint64
	commits        []int32 // by step and chunk
	own            [][]uint64
	count          [2]Counter
	steps, chunk   int
	adjacent       func(step, i int) int
	lose           func(w *Worker, step int) // between Offer and Commit
}

func newRelay(p *Pool, cells, steps, chunk int) *relay {
	r := &relay{cells: make([]uint64, cells), between: make([]uint64, cells), steps: steps, chunk: chunk,
		own: make([][]uint64, p.Size()), lose: func(*Worker, int) {}}
	for i := range r.own {
		r.own[i] = make([]uint64, cells)
	}
	r.adjacent = func(_, i int) int { return (i + 1) % cells }
	r.commits = make([]int32, steps*cells)
	r.fill()
	return r
}

func (r *relay) fill() {
	for i := range r.cells {
		r.cells[i] = uint64(i)
	}
	clear(r.commits)
}

// want returns the cells after so many steps.
func (r *relay) want(steps int) []uint64 {
	now, then := make([]uint64, len(r.cells)), make([]uint64, len(r.cells))
	for i := range now {
		now[i] = uint64(i)
	}
	for s := range steps {
		for i := range now {
			then[i] = mix(now[i] ^ now[r.adjacent(s, i)]<<1)
		}
		for i := range now {
			now[i] += then[i]
		}
	}
	return now
}

// run is a worker's part: a step reads all cells, and after a barrier in its middle adds to them in
// place.
func (r *relay) run(w *Worker) {
	first, back := w.Resumed()
	if !back {
		first = 0
	}
	for s := first; s < r.steps; s++ {
		r.read(w, s, &r.count[0], 0, len(r.cells))
		w.Barrier()
		r.add(w, s, &r.count[1], 0, len(r.cells))
		w.BarrierTo(s+1, nil)
	}
}

// read and add are the halves of a step for some of the cells.
func (r *relay) read(w *Worker, step int, c *Counter, first, n int) {
	r.loop(w, step, c, first, n, func(i int) uint64 { return mix(r.cells[i] ^ r.cells[r.adjacent(step, i)]<<1) },
		func(i int, v uint64) { r.between[i] = v })
}

func (r *relay) add(w *Worker, step int, c *Counter, first, n int) {
	r.loop(w, step, c, first, n, func(i int) uint64 { return r.between[i] }, func(i int, v uint64) {
		r.cells[i] += v
		r.commits[step*len(r.cells)+i]++
	})
}

func (r *relay) loop(w *Worker, step int, c *Counter, first, n int, compute func(i int) uint64,
	store func(i int, v uint64)) {
	own := r.own[w.Index()]
	for lo, hi, ok := w.Next(c, n, r.chunk); ok; lo, hi, ok = w.Next(c, n, r.chunk) {
		lo, hi := first+lo, first+hi
		private := w.Private()
		if private && !raceEnabled { // the race detector would report reads of cells that others change
			w.Offer()
		}
		for i := lo; i < hi; i++ {
			own[i] = compute(i)
		}
		if private {
			if raceEnabled {
				w.Offer()
			}
			r.lose(w, step)
			w.Commit()
		}
		for i := lo; i < hi; i++ {
			store(i, own[i])
		}
	}
}

func (r *relay) check(t *testing.T, what string) {
	t.Helper()
	if want := r.want(r.steps); !slices.Equal(r.cells, want) {
		t.Fatalf("%s: cells differ: %v, want %v", what, r.cells, want)
	}
	for i, n := range r.commits {
		if n != 1 {
			t.Fatalf("%s: cell %d of step %d was committed %d times", what, i%len(r.cells), i/len(r.cells), n)
		}
	}
}

// totals returns the counts of all workers about losses.
func totals(p *Pool) WorkerStats {
	s := p.Stats()
	all := s.Total()
	return WorkerStats{Taken: all.Taken, Left: all.Left, Private: all.Private}
}

// tolerantPool opens a pool that is always in preemption-tolerant mode.
func tolerantPool(t *testing.T, n int, losses string) *Pool {
	t.Helper()
	t.Setenv(lossesVariable, losses)
	return open(t, n, Options{})
}

func TestEveryChunkIsCommittedOnceWithLosses(t *testing.T) {
	runs := 60
	if testing.Short() {
		runs = 20
	}
	var all WorkerStats
	for _, n := range []int{2, 3, 5} {
		p := tolerantPool(t, n, fmt.Sprintf("%d:3%%:300us", n))
		r := newRelay(p, 23, 12, 3)
		for run := range runs {
			r.fill()
			if run%2 == 0 {
				p.RunTolerant(r.run)
			} else {
				p.Lead(func(l *Leader) { l.RunTolerant(r.run) })
			}
			r.check(t, fmt.Sprintf("%d workers, run %d", n, run))
		}
		s := totals(p)
		all.Taken, all.Left = all.Taken+s.Taken, all.Left+s.Left
	}
	if all.Taken == 0 || all.Left == 0 {
		t.Errorf("no chunk was reclaimed: %+v", all)
	}
}

// TestOneWorkerEndsTheRunAlone checks that any one worker finishes a run while all others are
// descheduled for much longer.
func TestOneWorkerEndsTheRunAlone(t *testing.T) {
	p := tolerantPool(t, 3, "1:0%:1ms")
	for left := range 3 {
		r, release := newRelay(p, 12, 6, 2), make(chan struct{})
		var others sync.WaitGroup
		var lose [3]func()
		for i := range lose {
			lose[i] = others.Wait // so that the others have something to be lost with
			if i != left {
				others.Add(1)
				lose[i] = sync.OnceFunc(func() {
					others.Done()
					<-release
				})
			}
		}
		r.lose = func(w *Worker, step int) {
			if step == 1 {
				lose[w.Index()]()
			}
		}
		p.RunTolerant(r.run)
		r.check(t, fmt.Sprint("left with worker ", left))
		p.RunTolerant(newRelay(p, 12, 6, 2).run) // while the others are away
		close(release)
		p.Run(func(w *Worker) { w.Barrier() }) // which all take part in
	}
	if s := totals(p); s.Left < 6 {
		t.Errorf("%d workers were left out, want 6 or more", s.Left)
	}
}

// TestLongChunksAreNotReclaimedForever checks that chunks that take longer than the patience of the
// others are finished in preemption-tolerant mode.
func TestLongChunksAreNotReclaimedForever(t *testing.T) {
	p := tolerantPool(t, 2, "1:0%:1ms")
	r := newRelay(p, 3, 3, 1)
	r.lose = func(*Worker, int) { time.Sleep(3 * maxPatience) } // what every chunk takes
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.RunTolerant(r.run)
	}()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		t.Fatalf("the run has not ended: %+v", totals(p))
	}
	r.check(t, "long chunks")
	if s := totals(p); s.Taken > 6*9 { // of 6 phases
		t.Errorf("reclaimed %d times", s.Taken)
	}
}

// TestTolerantModeStartsWithinARun checks that a run that starts with all workers can enter
// preemption-tolerant mode.
func TestTolerantModeStartsWithinARun(t *testing.T) {
	p := open(t, 2, Options{})
	for range 20 {
		p.risk.Store(0)
		r := newRelay(p, 16, 20, 1)
		r.lose = func(w *Worker, step int) {
			if w.Index() == 1 && step == 14 {
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
		r.check(t, "raised")
		if !p.tolerant {
			t.Fatal("preemption-tolerant mode did not start")
		}
	}
	if s := totals(p); s.Private == 0 {
		t.Error("no chunk was private")
	}
	p.Gather()
	if p.risk.Store(int64(p.now() + time.Minute)); !p.atRisk() {
		t.Error("a pool at risk does not start runs in preemption-tolerant mode")
	}
	if p.risk.Store(1); p.atRisk() || p.risk.Load() != 0 {
		t.Error("preemption-tolerant mode does not end long after the last loss")
	}
}

// TestUndisturbedRun checks that without losses no chunk of a run is private or computed twice.
func TestUndisturbedRun(t *testing.T) {
	p := open(t, 2, Options{Spin: NoSpin})
	for range 50 {
		r := newRelay(p, 40, 10, 3)
		p.RunTolerant(r.run)
		r.check(t, "undisturbed")
	}
	if s := totals(p); s != (WorkerStats{}) {
		t.Errorf("an undisturbed pool counted %+v", s)
	}
}

// TestPanicEndsTolerantRun checks that a panic ends a run in preemption-tolerant mode on every
// worker, and that later runs are complete.
func TestPanicEndsTolerantRun(t *testing.T) {
	p := tolerantPool(t, 3, "9:5%:200us")
	for run := range 30 {
		r := newRelay(p, 12, 8, 2)
		failing := errors.New("broken")
		r.lose = func(w *Worker, step int) {
			if step == 3 {
				panic(failing)
			}
		}
		func() {
			defer func() {
				if e, ok := recover().(*Panic); !ok || !errors.Is(e, failing) {
					t.Errorf("run %d ended with %v", run, e)
				}
			}()
			p.RunTolerant(r.run)
		}()
		r = newRelay(p, 12, 8, 2)
		p.RunTolerant(r.run)
		r.check(t, "after a panic")
	}
	p.Gather()
	if n := p.away.Load(); n != 0 {
		t.Errorf("%d workers are away", n)
	}
}

// TestTeamsChangeWhileWorkersAreAway checks that teams change while workers are left out.
func TestTeamsChangeWhileWorkersAreAway(t *testing.T) {
	p := tolerantPool(t, 3, "4:4%:500us")
	rng := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		active := rng.Perm(3)[:1+rng.IntN(3)]
		if _, err := p.SetActive(active); err != nil {
			t.Fatal(err)
		}
		r := newRelay(p, 12, 6, 1)
		p.RunTolerant(r.run)
		r.check(t, fmt.Sprint(active))
	}
}

func TestParseLosses(t *testing.T) {
	if l, err := parseLosses("7:50%:2ms"); err != nil || *l != (losses{7, 1 << 31, 2 * time.Millisecond}) {
		t.Errorf("%+v, %v", l, err)
	}
	for _, text := range []string{"7", "7:50%", "x:50%:2ms", "7:101%:2ms", "7:-1%:2ms", "7:NaN%:2ms", "7:1%:0s",
		"7:1%:2h", "7:1%:2ms:"} {
		t.Setenv(lossesVariable, text)
		if _, err := New([]int{0}, Options{}); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}
