package cost

import (
	"math"
	"testing"

	"sandwich/microkernel"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/model/synth"
)

// TestMoves counts what norms, rotations and the embedding of a small model move, whose rows are
// of 256 values, and holds it against what its ops move one by one.
func TestMoves(t *testing.T) {
	c := synth.Small("llama")
	p := planOf(t, c, gguf.Q8_0, microkernel.ComputeInt8)
	m, err := arch.Model(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, rows := range []Rows{{Spans: []Span{{N: 7}}, Heads: 1}, {Spans: []Span{{5, 1}, {9, 1}}, Heads: 2},
		{Spans: []Span{{N: 64}}}} {
		list, at, err := opWorks(m, p, &p.Prefill, rows)
		if err != nil {
			t.Fatal(err)
		}
		want, largest := 0.0, 0.0
		for i, k := range at {
			if op := &m.Ops[i]; len(op.W) == 0 && op.Kind != model.OpAttention {
				want += list[k].Parts[0].Moved
				largest = math.Max(largest, list[k].Parts[0].Touched)
			}
		}
		moved, touched := 0.0, 0.0
		for _, s := range workOf(t, c, p).Moves(rows) {
			moved, touched = moved+s.Moved, math.Max(touched, s.Touched)
		}
		if moved != want || touched != largest || want == 0 {
			t.Errorf("%v: %g bytes moved and at most %g touched, op by op %g and %g", rows, moved, touched, want,
				largest)
		}
		n := float64(len(rows.Spans))
		if len(rows.Spans) == 1 {
			n = float64(rows.Spans[0].N)
		}
		// the embedding writes X, the first norm reads X and writes H, the others read X and Y and
		// write X and H
		if minimum := n * 4 * 256 * float64(1+2+4*(2*c.Layers-1)); moved < minimum {
			t.Errorf("%v: %g bytes, less than %g of the norms alone", rows, moved, minimum)
		}
	}
}
