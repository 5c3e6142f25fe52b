package pool

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sandwich/runtime/pool/internal/sys"
)

// open returns a pool of n workers on the PUs that this process may use, round robin, and closes it
// with the test.
func open(t testing.TB, n int, o Options) *Pool {
	t.Helper()
	allowed, err := sys.AllowedPUs()
	if err != nil {
		t.Fatal(err)
	}
	pus := make([]int, n)
	for i := range pus {
		pus[i] = allowed[i%len(allowed)]
	}
	p, err := New(pus, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// soon waits until a condition holds and reports whether it did before a deadline that a machine
// which is only busy does not miss.
func soon(holds func() bool) bool {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if holds() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}

// sizes are teams below, at and above the number of CPUs, with and without a barrier tree.
var sizes = []int{1, 2, 3, 8, 9, 70}

func TestRunReachesEveryWorkerOnce(t *testing.T) {
	for _, n := range sizes {
		p := open(t, n, Options{})
		hits := make([]atomic.Int32, n)
		for range 50 {
			p.Run(func(w *Worker) {
				if w.N() != n || p.workers[w.ID()] != w {
					t.Errorf("worker %d of %d has ID %d of %d", w.Index(), n, w.ID(), w.N())
				}
				hits[w.ID()].Add(1)
			})
		}
		for i := range hits {
			if got := hits[i].Load(); got != 50 {
				t.Errorf("%d workers: worker %d ran %d times in 50 runs", n, i, got)
			}
		}
	}
}

// TestBarrierOrdersMemory checks that a barrier orders plain writes before it and reads after it,
// for the race detector.
func TestBarrierOrdersMemory(t *testing.T) {
	for _, n := range sizes {
		p := open(t, n, Options{})
		rounds := 200
		cells := make([]int, n)
		p.Run(func(w *Worker) {
			for r := 1; r <= rounds; r++ {
				cells[w.ID()] = r
				w.Barrier()
				if got := cells[(w.ID()+1)%n]; got != r {
					t.Errorf("%d workers, round %d: the write of the previous worker reads %d", n, r, got)
					return
				}
				w.Barrier()
			}
		})
	}
}

func TestLocalBarrierKeepsToItsGroup(t *testing.T) {
	p := open(t, 5, Options{})
	if err := p.regroup([][]int{{4, 1}, {0, 2, 3}}); err != nil {
		t.Fatal(err)
	}
	var cells [5]int
	groups, ranks := [5]int{}, [5]int{}
	p.Run(func(w *Worker) {
		groups[w.ID()], ranks[w.ID()] = w.Group().ID(), w.GroupRank()
		peer := []int{2, 4, 3, 0, 1}[w.ID()]
		for r := 1; r <= 10*(1+w.Group().ID()*7); r++ { // the groups pass different numbers of local barriers
			cells[w.ID()] = r
			w.LocalBarrier()
			if cells[peer] != r {
				t.Errorf("worker %d round %d: its peer reads %d", w.ID(), r, cells[peer])
			}
			w.LocalBarrier()
		}
		w.Barrier()
	})
	if want := [5]int{1, 0, 1, 1, 0}; groups != want {
		t.Errorf("groups %v, want %v", groups, want)
	}
	if want := [5]int{0, 1, 1, 2, 0}; ranks != want {
		t.Errorf("group ranks %v, want %v", ranks, want)
	}
}

// TestUse checks that the grouping changes between two ops of one run and applies to the active
// set.
func TestUse(t *testing.T) {
	p := open(t, 4, Options{})
	pairs, err := p.NewGrouping([][]int{{0, 3}, {1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := p.NewGrouping([][]int{{0, 3}, {1, 2}}); again != pairs {
		t.Error("an equal grouping was made twice")
	}
	if _, err := p.SetActive([]int{3, 1, 0}); err != nil {
		t.Fatal(err)
	}
	var got [3]string
	p.Run(func(w *Worker) {
		first := fmt.Sprint(w.Group().ID(), w.Group().Size())
		w.Barrier()
		w.Use(pairs)
		w.LocalBarrier()
		got[w.ID()] = fmt.Sprint(first, " ", w.Group().ID(), w.GroupRank(), w.Group().Size())
	})
	if want := [3]string{"0 3 0 1 2", "0 3 1 0 1", "0 3 0 0 2"}; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, bad := range [][][]int{{{0, 4}}, {{0, -1}}, {{0}, {0}}} {
		if err := p.regroup(bad); err == nil {
			t.Errorf("groups %v were accepted", bad)
		}
	}
}

func TestSetActiveThousandsOfTimes(t *testing.T) {
	p := open(t, 4, Options{})
	rng := rand.New(rand.NewPCG(1, 2))
	var switched uint64
	prev := p.all
	for range 3000 {
		set := rng.Perm(4)[:1+rng.IntN(4)]
		if _, err := p.SetActive(set); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(set, prev) {
			switched++
		}
		prev = set
		var mask atomic.Int64
		p.Run(func(w *Worker) {
			w.Barrier()
			if set[w.ID()] != w.Index() {
				t.Errorf("worker %d has ID %d in %v", w.Index(), w.ID(), set)
			}
			mask.Add(1 << w.Index())
		})
		want := int64(0)
		for _, i := range set {
			want += 1 << i
		}
		if mask.Load() != want {
			t.Fatalf("workers %b ran, want %b", mask.Load(), want)
		}
	}
	s := p.Stats()
	if s.Switches != switched || len(s.Durations) != switchHistory || !slices.Equal(s.Active, prev) {
		t.Errorf("%d switches counted of %d, %d durations, active %v of %v", s.Switches, switched, len(s.Durations),
			s.Active, prev)
	}
}

// TestReconfigureFromOutside checks that setters wait for the end of a run in progress.
func TestReconfigureFromOutside(t *testing.T) {
	p := open(t, 3, Options{})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		rng := rand.New(rand.NewPCG(3, 4))
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := p.SetActive(rng.Perm(3)[:1+rng.IntN(3)]); err != nil {
				t.Error(err)
			}
			if err := p.regroup([][]int{{rng.IntN(3)}}); err != nil {
				t.Error(err)
			}
			p.Stats()
		}
	})
	var c Counter
	for i := range 1000 {
		var got atomic.Int64
		p.Run(func(w *Worker) {
			w.LocalBarrier()
			w.Barrier()
			for lo, hi, ok := w.Next(&c, 10, 3); ok; lo, hi, ok = w.Next(&c, 10, 3) {
				got.Add(int64(hi - lo))
			}
		})
		if got.Load() != 10 {
			t.Fatalf("run %d covered %d of 10 items", i, got.Load())
		}
	}
	close(stop)
	wg.Wait()
}

func TestSetActiveRefuses(t *testing.T) {
	p := open(t, 2, Options{})
	for _, bad := range [][]int{{}, {2}, {-1}, {0, 0}} {
		if _, err := p.SetActive(bad); err == nil {
			t.Errorf("active set %v was accepted", bad)
		}
	}
}

// recoverPanic returns the *Panic with which f ends.
func recoverPanic(t *testing.T, f func()) (e *Panic) {
	t.Helper()
	defer func() {
		var ok bool
		if e, ok = recover().(*Panic); !ok {
			t.Fatal("no *Panic came back")
		}
	}()
	f()
	return nil
}

func TestPanicComesBack(t *testing.T) {
	p := open(t, 9, Options{})
	cause := errors.New("the cause")
	run := map[string]func(func(*Worker)){
		"Run":        p.Run,
		"Leader.Run": func(fn func(*Worker)) { p.Lead(func(l *Leader) { l.Run(fn) }) },
	}
	for name, run := range run {
		for _, bad := range []int{0, 8} {
			e := recoverPanic(t, func() {
				run(func(w *Worker) {
					w.Barrier()
					if w.ID() == bad {
						panic(cause)
					}
					w.LocalBarrier()
					w.Barrier()
					t.Errorf("%s: worker %d passed a barrier that worker %d never reached", name, w.ID(), bad)
				})
			})
			if e.Worker != bad || !errors.Is(e, cause) || !strings.Contains(string(e.Stack), "TestPanicComesBack") {
				t.Errorf("%s: got worker %d, %v", name, e.Worker, e)
			}
			var after atomic.Int32
			run(func(w *Worker) { w.Barrier(); w.LocalBarrier(); after.Add(1) })
			if after.Load() != 9 {
				t.Errorf("%s: %d of 9 workers ran after a panic", name, after.Load())
			}
		}
	}
}

func TestGoexitComesBack(t *testing.T) {
	p := open(t, 3, Options{Pin: true})
	for _, bad := range []int{0, 2} {
		fn := func(w *Worker) {
			if w.ID() == bad {
				runtime.Goexit()
			}
			w.Barrier()
		}
		if e := recoverPanic(t, func() { p.Run(fn) }); e.Worker != bad {
			t.Errorf("worker %d ended, worker %d was blamed", bad, e.Worker)
		}
		if e := recoverPanic(t, func() { p.Lead(func(l *Leader) { l.Run(fn) }) }); e.Worker != bad {
			t.Errorf("worker %d ended under Lead, worker %d was blamed", bad, e.Worker)
		}
		recoverPanic(t, func() { p.Lead(func(*Leader) { runtime.Goexit() }) })
		var after atomic.Int32
		p.Run(func(w *Worker) { w.Barrier(); after.Add(1) })
		if after.Load() != 3 {
			t.Errorf("%d of 3 workers ran after a Goexit", after.Load())
		}
	}
}

func TestLead(t *testing.T) {
	p := open(t, 3, Options{})
	var total atomic.Int32
	p.Lead(func(l *Leader) {
		for _, set := range [][]int{{0, 1, 2}, {1}, {2, 0}, nil} {
			if _, err := l.SetActive(set); err != nil {
				t.Error(err)
			}
			if err := l.regroup([][]int{{0}, {1, 2}}); err != nil {
				t.Error(err)
			}
			for range 100 {
				l.Run(func(w *Worker) { w.LocalBarrier(); w.Barrier(); total.Add(1) })
			}
		}
	})
	if got := total.Load(); got != 100*(3+1+2+3) {
		t.Errorf("%d executions, want %d", got, 100*9)
	}
	cause := errors.New("leader")
	if e := recoverPanic(t, func() { p.Lead(func(*Leader) { panic(cause) }) }); !errors.Is(e, cause) {
		t.Errorf("got %v", e)
	}
	p.Run(func(*Worker) {})
}

func TestOversubscribedAndSleepingMakeProgress(t *testing.T) {
	for _, spin := range []time.Duration{0, NoSpin, time.Microsecond} {
		p := open(t, 8, Options{Spin: spin})
		var n atomic.Int32
		for range 20 {
			p.Run(func(w *Worker) {
				for range 20 {
					w.Barrier()
				}
				n.Add(1)
			})
		}
		if n.Load() != 160 {
			t.Errorf("spin %v: %d of 160", spin, n.Load())
		}
	}
	small := open(t, 1, Options{Spin: NoSpin})
	parked := func() bool {
		small.Run(func(*Worker) {})
		return small.Stats().Workers[0].Parks > 0
	}
	if !soon(parked) {
		t.Error("a worker without spinning never slept")
	}
}

func TestSpinLimits(t *testing.T) {
	for _, c := range []struct {
		pus            []int
		allowed        int
		asked          time.Duration
		worker, caller time.Duration
	}{
		{[]int{0, 1}, 2, 0, defaultSpin, 0},
		{[]int{0, 1}, 4, 0, defaultSpin, defaultSpin},
		{[]int{0, 1}, 4, NoSpin, 0, 0},
		{[]int{0, 0}, 4, 0, 0, 0},
		{[]int{0, 1, 2}, 2, time.Second, 0, 0},
	} {
		if w, g := spinLimits(c.pus, c.allowed, c.asked); w != c.worker || g != c.caller {
			t.Errorf("%+v: got %v, %v", c, w, g)
		}
	}
}
