package pool

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestLeadersShare checks that leaders of one pool and calls of Run from outside use the workers
// one after the other, each with its own active workers, and that runs that panic do not disturb
// others.
func TestLeadersShare(t *testing.T) {
	const leaders, rounds = 3, 40
	for _, n := range []int{1, 2, 5, 9} {
		for _, spin := range []time.Duration{NoSpin, defaultSpin} {
			p := open(t, n, Options{Spin: spin})
			var users atomic.Int32
			enter := func() {
				if users.Add(1) != 1 {
					t.Error("two users have the workers")
				}
			}
			var all sync.WaitGroup
			for i := range leaders {
				active := []int{0, n - 1, n / 2}[i:]
				slices.Sort(active)
				active = slices.Compact(active)
				all.Go(func() {
					p.LeadShared(func(l *Leader) {
						for round := range rounds {
							l.Take()
							enter()
							leadOnce(t, l, active, i == 1 && round%7 == 3)
							users.Add(-1)
							l.Give()
						}
					})
				})
			}
			all.Go(func() {
				for range rounds {
					var members atomic.Int32
					p.Run(func(w *Worker) {
						if members.Add(1) == 1 {
							enter()
						}
						w.Barrier()
						if w.ID() == 0 {
							users.Add(-1)
						}
					})
				}
			})
			all.Wait()
			if got := p.Stats().Workers[0].Barriers; n > 1 && got < 2*rounds {
				t.Errorf("worker 0 of %d passed %d barriers, want at least %d", n, got, 2*rounds)
			}
			if len(p.shared.workers) != 0 {
				t.Errorf("%d leaders are left", len(p.shared.workers))
			}
		}
	}
}

// leadOnce runs functions with barriers on the active workers. The last of them panics if fails is
// set.
func leadOnce(t *testing.T, l *Leader, active []int, fails bool) {
	if _, err := l.SetActive(active); err != nil {
		t.Error(err)
		return
	}
	ran := make([]atomic.Int32, l.p.Size())
	run := func(w *Worker) {
		ran[w.Index()].Add(1)
		w.Barrier()
		if ran[active[0]].Load() == 0 {
			t.Error("a worker passed a barrier before another one arrived")
		}
		w.Barrier()
	}
	l.Run(run)
	for i := range ran {
		want := int32(0)
		if slices.Contains(active, i) {
			want = 1
		}
		if got := ran[i].Load(); got != want {
			t.Errorf("worker %d ran %d times, want %d", i, got, want)
		}
	}
	if !fails {
		return
	}
	defer func() {
		if e, ok := recover().(*Panic); !ok || e.Value != "worker" {
			t.Errorf("the run that fails panics with %v", e)
		}
	}()
	l.Run(func(w *Worker) {
		if w.ID() == w.N()-1 {
			panic("worker")
		}
		w.Barrier()
	})
}

// TestLeadersShareWithLosses checks runs in preemption-tolerant mode of leaders that share a pool.
func TestLeadersShareWithLosses(t *testing.T) {
	p := tolerantPool(t, 3, "5:3%:300us")
	var all sync.WaitGroup
	for range 3 {
		r := newRelay(p, 23, 6, 3)
		all.Go(func() {
			p.LeadShared(func(l *Leader) {
				for range 10 {
					r.fill()
					l.Take()
					l.RunTolerant(r.run)
					l.Give()
					for i, n := range r.commits {
						if n != 1 {
							t.Errorf("cell %d was committed %d times", i, n)
						}
					}
				}
			})
		})
	}
	for range 10 {
		p.Run(func(w *Worker) { w.Barrier() })
	}
	all.Wait()
	p.Gather()
}

// TestLeadSharedEnds checks what comes of leaders that fail, and of those of a closed pool.
func TestLeadSharedEnds(t *testing.T) {
	p := open(t, 2, Options{})
	cause := errors.New("cause")
	for name, fn := range map[string]func(l *Leader){
		"a panic":             func(*Leader) { panic(cause) },
		"a panic after Take":  func(l *Leader) { l.Take(); panic(cause) },
		"a panic of a worker": func(l *Leader) { l.Take(); l.Run(func(*Worker) { panic(cause) }) },
		"Run without Take":    func(l *Leader) { l.Run(func(*Worker) {}) },
		"Goexit":              func(l *Leader) { l.Take(); runtime.Goexit() },
		"Goexit in a run":     func(l *Leader) { l.Take(); l.Run(func(*Worker) { runtime.Goexit() }) },
	} {
		e := recoverPanic(t, func() { p.LeadShared(fn) })
		if e == nil || errors.Is(e, cause) != strings.HasPrefix(name, "a panic") {
			t.Errorf("%s: %v", name, e)
		}
		ran := atomic.Int32{}
		p.Run(func(*Worker) { ran.Add(1) })
		if ran.Load() != 2 {
			t.Errorf("after %s %d workers run", name, ran.Load())
		}
	}
	taken := make(chan struct{})
	closed := make(chan struct{})
	go func() {
		<-taken
		p.Close()
		close(closed)
	}()
	e := recoverPanic(t, func() {
		p.LeadShared(func(l *Leader) {
			l.Take()
			close(taken)
			l.Run(func(w *Worker) { w.Barrier() })
			l.Give()
			<-closed
			l.Take()
		})
	})
	if !errors.Is(e, ErrClosed) {
		t.Errorf("after Close: %v", e)
	}
}

// TestDropFlags checks that a pool forgets the flags that are dropped, and no others.
func TestDropFlags(t *testing.T) {
	p := open(t, 2, Options{})
	a, b, c := p.NewFlags(1), p.NewFlags(2), p.NewFlags(3)
	p.DropFlags(a, c)
	if !slices.Equal(p.flags, []*Flags{b}) {
		t.Errorf("%d flags are left", len(p.flags))
	}
}
