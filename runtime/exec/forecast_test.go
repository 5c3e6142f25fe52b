package exec

import (
	"testing"

	"sandwich/runtime/mem"
)

// TestForeseeIsWhatOpenHolds: the table that is printed before anything is loaded is that of the
// loaded model, rank by rank.
func TestForeseeIsWhatOpenHolds(t *testing.T) {
	for _, ranks := range []int{1, 2} {
		o := smallOptions(t, ranks)
		o.Blocks, o.LogitRows = 3, 5
		said, err := Foresee(o.Plan, o.Blocks, o.LogitRows)
		if err != nil {
			t.Fatal(err)
		}
		a, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if len(said) != ranks {
			t.Fatalf("%d ranks: %v", ranks, said)
		}
		for r, f := range said {
			for _, x := range []struct {
				what string
				said int64
				held *mem.Buffer
			}{{"weights", f.Weights, a.Weights.Memory(r)}, {"KV cache", f.KV, a.KV.Memory(r)},
				{"activations", f.Activations, a.Buffers.Memory(r)}} {
				// buffers end with a page; what ranks round for themselves is at most as long as
				// the row
				held, page := int64(x.held.Len()), int64(mem.PageSize())
				if x.said <= held-page || x.said > held+held/8 {
					t.Errorf("%d ranks, rank %d: %s: %d bytes foreseen, %d held", ranks, r, x.what, x.said, held)
				}
			}
		}
		a.Close()
	}
}
