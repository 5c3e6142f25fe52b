package pool

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"
)

// TestFlagsOrderMemory checks that a flag orders plain writes before Raise and reads after Wait,
// for the race detector. Workers form a ring; each waits only for the next one.
func TestFlagsOrderMemory(t *testing.T) {
	for _, n := range sizes {
		for _, spin := range []time.Duration{NoSpin, defaultSpin} {
			p := open(t, n, Options{Spin: spin})
			f := p.NewFlags(n)
			cells := make([][3]int, n) // the next worker is at most one round ahead
			for range 3 {
				p.Run(func(w *Worker) {
					next := (w.ID() + 1) % n
					for r := range 50 {
						number := w.Run()<<16 | uint64(r)
						cells[w.ID()][r%3] = r
						f.Raise(w.ID(), number)
						f.Wait(w, next, number)
						if got := cells[next][r%3]; got != r {
							t.Errorf("%d workers, round %d: the write of the previous worker reads %d", n, r, got)
							return
						}
						w.Barrier() // the previous worker has read the cell
						w.Met()
					}
				})
			}
		}
	}
}

// TestFlagsUnwindFailedRun checks that workers that wait for a failed worker are released, and that
// flags work in the next run.
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
				t.Errorf("round %d: worker %d passed a flag that was not raised", round, w.ID())
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

// TestMetStartsCountersOver checks that counters may be used again after Met, whatever local
// barriers each group passed before.
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
