package pool

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"
)

// A flag orders plain writes before Raise with reads after Wait; the race detector watches this
// test. Workers form a ring, each waiting for its neighbour alone.
func TestFlagsOrderMemory(t *testing.T) {
	for _, n := range sizes {
		for _, spin := range []time.Duration{NoSpin, defaultSpin} {
			p := open(t, n, Options{Spin: spin})
			f := p.NewFlags(n)
			cells := make([][3]int, n) // a neighbour is at most one round ahead
			for range 3 {
				p.Run(func(w *Worker) {
					next := (w.ID() + 1) % n
					for r := range 50 {
						number := w.Run()<<16 | uint64(r)
						cells[w.ID()][r%3] = r
						f.Raise(w.ID(), number)
						f.Wait(w, next, number)
						if got := cells[next][r%3]; got != r {
							t.Errorf("%d workers, round %d: the neighbour's write reads %d", n, r, got)
							return
						}
						w.Barrier() // the neighbour on the other side has read the cell
						w.Met()
					}
				})
			}
		}
	}
}

// Whoever waits for a worker that failed is released, and flags serve the next run.
func TestFlagsUnwindFailedRun(t *testing.T) {
	const n = 4
	p := open(t, n, Options{})
	f := p.NewFlags(1)
	boom := errors.New("boom")
	for round := range 20 {
		func() {
			defer func() {
				e, ok := recover().(*Panic)
				if !ok || !errors.Is(e, boom) || e.Worker != round%n {
					t.Errorf("round %d: got %v", round, e)
				}
			}()
			p.Run(func(w *Worker) {
				if w.ID() == round%n {
					time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond) // the others spin, or sleep already
					panic(boom)
				}
				f.Wait(w, 0, w.Run())
				t.Errorf("round %d: worker %d passed a flag that nobody raised", round, w.ID())
			})
		}()
		p.Run(func(w *Worker) {
			if w.ID() == 0 {
				f.Raise(0, w.Run())
			}
			f.Wait(w, 0, w.Run())
		})
	}
}

// Met lets counters be used again, whatever local barriers each group passed before.
func TestMetStartsCountersOver(t *testing.T) {
	const n, rounds = 3, 100
	p := open(t, n, Options{})
	if err := p.regroup([][]int{{0, 1}, {2}}); err != nil {
		t.Fatal(err)
	}
	f := p.NewFlags(n)
	var c Counter
	var took [n]int
	p.Run(func(w *Worker) {
		for r := range rounds {
			if r%3 == w.Group().ID() {
				w.LocalBarrier()
			}
			number := w.Run()<<16 | uint64(2*r+1)
			meet := func(number uint64) {
				f.Raise(w.ID(), number)
				for i := range n {
					f.Wait(w, i, number)
				}
				w.Met()
			}
			meet(number)
			for lo, hi, ok := w.Next(&c, 10, 3); ok; lo, hi, ok = w.Next(&c, 10, 3) {
				took[w.ID()] += hi - lo
			}
			meet(number + 1)
		}
	})
	if all := took[0] + took[1] + took[2]; all != 10*rounds {
		t.Errorf("%d items were handed out of %d", all, 10*rounds)
	}
}
