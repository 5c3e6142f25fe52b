package exec

import (
	"testing"

	"sandwich/runtime/kvcache"
)

// TestRunAllocatesNothing runs decode steps and prompts again and again.
func TestRunAllocatesNothing(t *testing.T) {
	for _, ranks := range []int{1, 2} {
		o := smallOptions(t, ranks)
		o.Unpinned = true
		a, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		e, err := a.Compile(&o.Plan.Decode, a.Workers)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		cache := a.NewCache()
		seq := cache.Open(kvcache.Salt{})
		if !cache.Reserve(seq, 8) {
			t.Fatal("no blocks")
		}
		cache.Cover(seq, 8)
		for _, rows := range []int{1, 8} {
			b := &kvcache.Batch{LogitRows: []int32{int32(rows - 1)}, Tokens: make([]int32, rows)}
			b.AddSpan(seq, kvcache.Span{Rows: rows})
			if n := testing.AllocsPerRun(50, func() {
				if _, err := e.Run(a.Workers.Pool, b, 0, nil); err != nil {
					t.Fatal(err)
				}
			}); n != 0 {
				t.Errorf("%d ranks, %d rows: %g allocations a forward", ranks, rows, n)
			}
		}
	}
}
