package qtype_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"sandwich/microkernel/qtype"
)

// TestFinite checks for scales of each type, all near the largest ones and in each of their places,
// whether the values of extreme codes are reported as finite.
func TestFinite(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 9))
	for _, id := range qtype.All() {
		d := id.Desc()
		if !id.Quantized() {
			continue
		}
		refused := 0
		for h := range 1 << 16 {
			if top := h >> 8 & 0x7F; h%37 != 0 && top != 0x7B && top != 0x7C && top != 0x7F {
				continue
			}
			block, sub := make([]byte, d.Bytes), qtype.SubBlock{}
			for i := range block {
				block[i] = byte(h >> (i % 2 * 8))
			}
			if n := len(d.BlockScales); n > 1 { // one of two is fine
				at := d.BlockScales[h/7%2]
				block[at], block[at+1] = 0, 0
			}
			d.Read(&sub, block, 0)
			want := true
			for i := range d.BlockScales {
				f := float64(d.BlockScale(sub.BlockScales[i], i))
				if limit := float64(d.Largest() - d.Lift()); d.ScaleRaw.Float == qtype.Brain {
					f *= limit
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
		if refused == 0 && len(d.BlockScales) > 0 {
			t.Errorf("%s: no scale was refused", id)
		}
	}
}
