package qtype_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"sandwich/microkernel/qtype"
)

// TestFinite asks for every scale that a block of each type can have, in any of its places, whether
// the values of its extreme numbers are numbers.
func TestFinite(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 9))
	for _, id := range qtype.All() {
		d := id.Desc()
		if !id.Quantized() {
			continue
		}
		refused := 0
		for h := range 1 << 16 {
			block := make([]byte, d.Bytes)
			sub := qtype.SubBlock{}
			for i := range d.BlockScales {
				sub.BlockScales[i] = uint16(h) * uint16((h/7+i)%2) // one of two, in turn
			}
			d.Write(block, sub, 0)
			d.Read(&sub, block, 0) // a scale in a byte is not any float
			want := true
			for i := range d.BlockScales {
				f := float64(d.BlockScale(sub.BlockScales[i], i))
				if most := float64(d.Largest() - d.Lift()); d.ScaleRaw.Float == qtype.Brain {
					f *= most
				}
				want = want && math.Abs(f) <= math.MaxFloat32 // not of a NaN
			}
			three := make([]byte, 3*d.Bytes)
			copy(three[rng.IntN(3)*d.Bytes:], block)
			if got := d.Finite(three); got != want {
				t.Fatalf("%s: a scale of %#x is finite: %v, want %v", id, h, got, want)
			}
			if !want {
				refused++
			}
		}
		if refused == 0 && d.Subs != qtype.FloatSubs && d.ScaleRaw.Float != qtype.Brain {
			t.Errorf("%s: no scale was refused", id)
		}
	}
}
