package allreduce

import (
	"math/rand/v2"
	"testing"

	"sandwich/runtime/pool"
)

// TestAllReduceRaisesTheGuard checks that a run enters preemption-tolerant mode after a sum, of one
// chunk or of many, in which a worker may be lost.
func TestAllReduceRaisesTheGuard(t *testing.T) {
	t.Setenv("SANDWICH_LOSE", "1:100%:20us") // every run raises it
	p := sumPool(t, 3, pool.NoSpin)
	s := newSumming(t, p, 3, 0, rand.New(rand.NewPCG(1, 2)))
	for op, shape := range [][2]int{{1, 768}, {64, 768}} {
		var parts []Matrix
		for range 4 {
			parts = append(parts, matrix(t, shape[0], shape[1]))
		}
		o := Job{Rows: shape[0], Width: shape[1], Partials: parts[:3], Into: parts[3]}
		rounds := 30
		if raceEnabled {
			rounds = 3
		}
		for range rounds {
			p.RunTolerant(func(w *pool.Worker) {
				if step, back := w.Resumed(); back {
					if step != 1 {
						t.Errorf("a worker came back to step %d", step)
					}
					return
				}
				s.write(w, &o, op, w.ID(), 0, rand.New(rand.NewPCG(w.Run(), 1)))
				s.reduce.Finish(w, w.ID(), &o, 1, nil)
				if !w.Tolerant() {
					t.Error("no guard was raised")
				}
			})
			p.Gather()
			s.check(&o, op, rand.New(rand.NewPCG(1, 1)))
		}
	}
}
