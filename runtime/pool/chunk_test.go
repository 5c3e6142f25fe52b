package pool

import (
	"sync/atomic"
	"testing"
)

func TestChunksCoverEachItemOnce(t *testing.T) {
	p := open(t, 4, Options{})
	var a, b Counter
	for _, total := range []int{0, 1, 7, 1000} {
		for _, chunk := range []int{0, 1, 3, 1000, 5000} {
			hits := make([]int32, total)
			p.Run(func(w *Worker) {
				for round := range 6 {
					c := &a
					if round%3 == 2 {
						c = &b // used less often than the other
					}
					for lo, hi, ok := w.Next(c, total, chunk); ok; lo, hi, ok = w.Next(c, total, chunk) {
						for i := lo; i < hi; i++ {
							atomic.AddInt32(&hits[i], 1)
						}
					}
					w.Barrier()
				}
			})
			for i, n := range hits {
				if n != 6 {
					t.Fatalf("total %d chunk %d: item %d came %d times in 6 loops", total, chunk, i, n)
				}
			}
		}
	}
}

// TestChunksAfterUnevenLocalBarriers checks that groups that passed different numbers of local
// barriers agree on a counter after a global one.
func TestChunksAfterUnevenLocalBarriers(t *testing.T) {
	p := open(t, 3, Options{})
	if err := p.regroup([][]int{{0}, {1, 2}}); err != nil {
		t.Fatal(err)
	}
	var shared Counter
	own := make([]Counter, 2)
	for range 20 {
		var sum, local atomic.Int64
		p.Run(func(w *Worker) {
			for range 5 + 11*w.Group().ID() {
				for lo, hi, ok := w.Next(&own[w.Group().ID()], 9, 2); ok; lo, hi, ok = w.Next(&own[w.Group().ID()], 9,
					2) {
					local.Add(int64(hi - lo))
				}
				w.LocalBarrier()
			}
			w.Barrier()
			for lo, hi, ok := w.Next(&shared, 100, 7); ok; lo, hi, ok = w.Next(&shared, 100, 7) {
				sum.Add(int64(hi - lo))
			}
		})
		if sum.Load() != 100 || local.Load() != 9*(5+16) {
			t.Fatalf("shared loop covered %d of 100, local loops %d of %d", sum.Load(), local.Load(), 9*(5+16))
		}
	}
}

func TestChunksBeyondTheCounterGrow(t *testing.T) {
	p := open(t, 1, Options{})
	var c Counter
	p.Run(func(w *Worker) {
		total, at := 3*maxChunks+5, 0
		for lo, hi, ok := w.Next(&c, total, 1); ok; lo, hi, ok = w.Next(&c, total, 1) {
			if lo != at || hi <= lo {
				t.Fatalf("chunk [%d,%d) after %d", lo, hi, at)
			}
			at = hi
		}
		if at != total {
			t.Errorf("covered %d of %d", at, total)
		}
	})
}

func TestSplit(t *testing.T) {
	for n := range 70 {
		for parts := 1; parts < 9; parts++ {
			for _, align := range []int{0, 1, 4, 16} {
				at, largest, smallest := 0, 0, n
				for i := range parts {
					lo, hi := Split(n, parts, i, align)
					if lo != at || hi < lo || (hi < n && align > 0 && hi%align != 0) {
						t.Fatalf("Split(%d,%d,%d,%d) = %d,%d after %d", n, parts, i, align, lo, hi, at)
					}
					at, largest, smallest = hi, max(largest, hi-lo), min(smallest, hi-lo)
				}
				if at != n || largest-smallest >= 2*max(align, 1) {
					t.Fatalf("Split(%d,%d,_,%d) ends at %d with sizes %d to %d", n, parts, align, at, smallest, largest)
				}
			}
		}
	}
}
