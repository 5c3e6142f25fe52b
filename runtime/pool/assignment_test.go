package pool

import (
	"sync/atomic"
	"testing"
)

// TestAssignment checks that workers at both ends get each chunk once in each phase.
func TestAssignment(t *testing.T) {
	const workers, rounds = 4, 200
	p, err := New(make([]int, workers), Options{Spin: NoSpin})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var parts [workers]Assignment
	var taken [workers][MaxAssigned]atomic.Int32
	sizes := [workers]int{1, 0, MaxAssigned, 17}
	p.Run(func(w *Worker) {
		for round := range rounds {
			own := (w.ID() + round) % workers
			for n := 0; n < 5 || round%2 == 0; n++ {
				i, ok := w.Front(&parts[own], sizes[own])
				if !ok {
					break
				}
				taken[own][i].Add(1)
			}
			for other := range parts {
				for w.Left(&parts[other], sizes[other]) > 0 {
					if i, ok := w.Back(&parts[other], sizes[other]); ok {
						taken[other][i].Add(1)
					}
				}
			}
			w.Barrier()
		}
	})
	for part := range taken {
		for i := range taken[part] {
			want := int32(0)
			if i < sizes[part] {
				want = rounds
			}
			if n := taken[part][i].Load(); n != want {
				t.Fatalf("piece %d of part %d was given out %d times, not %d", i, part, n, want)
			}
		}
	}
}
