package pool

import (
	"runtime"
	"testing"
	"time"
)

func TestCloseLeavesNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 10 {
		p := open(t, 6, Options{Pin: true})
		p.Run(func(w *Worker) { w.Barrier() })
		p.Close()
		p.Close()
		func() {
			defer func() {
				if recover() != ErrClosed {
					t.Error("a closed pool accepted a run")
				}
			}()
			p.Run(func(*Worker) {})
		}()
	}
	if !soon(func() bool { return runtime.NumGoroutine() <= before }) {
		t.Errorf("%d goroutines before, %d after", before, runtime.NumGoroutine())
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := New(nil, Options{}); err == nil {
		t.Error("a pool of no PUs was made")
	}
	if _, err := New([]int{0}, Options{Class: []int{1, 2}}); err == nil {
		t.Error("two classes for one PU were accepted")
	}
	if p, err := New([]int{0}, Options{Class: []int{7}}); err != nil {
		t.Error(err)
	} else {
		p.Run(func(w *Worker) {
			if w.Class() != 7 {
				t.Errorf("class %d", w.Class())
			}
		})
		p.Close()
	}
}

func TestNothingIsAllocated(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates; run without -race")
	}
	p := open(t, 2, Options{})
	var c Counter
	fn := func(w *Worker) {
		for _, _, ok := w.Next(&c, 8, 1); ok; _, _, ok = w.Next(&c, 8, 1) {
			w.Index()
		}
		w.Barrier()
		w.LocalBarrier()
	}
	down, up := []int{0}, []int{0, 1}
	cycle := func(run func(func(*Worker)), set func([]int) (time.Duration, error)) {
		for _, s := range [][]int{down, up} {
			if _, err := set(s); err != nil {
				t.Error(err)
			}
			run(fn)
		}
	}
	if n := testing.AllocsPerRun(100, func() { cycle(p.Run, p.SetActive) }); n != 0 {
		t.Errorf("%v allocations per Run and switch", n)
	}
	p.Lead(func(l *Leader) {
		if n := testing.AllocsPerRun(100, func() { cycle(l.Run, l.SetActive) }); n != 0 {
			t.Errorf("%v allocations per Leader.Run and switch", n)
		}
	})
}
