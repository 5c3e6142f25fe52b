package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"sandwich/microkernel/internal/kerneltest"
)

// TestAttentionOfFewRows checks that every number of rows, with and without tiles, has the bits of
// the oracle, also if products and sums are subnormal, which dot products treat as zeros while
// softmax and merge do not.
func TestAttentionOfFewRows(t *testing.T) {
	eachVec(t, func(t *testing.T, v *Vec, rng *rand.Rand) {
		for i, l := range []KVLayout{{64, KVF16, false}, {72, KVF16, false}, {33, KVF32, false}, {64, KVF32, false},
			{96, KVQ8, false}, {256, KVQ8, false}} {
			for _, dot := range dotsOn(v.ISA(), l.Elem) {
				l := l.For(dot)
				a, err := NewAttention(v.ISA(), l, AttentionForm{Dot: dot})
				if err != nil {
					t.Fatal(err)
				}
				if a.code == nil && i > 0 {
					continue // the oracle against itself: only that it runs
				}
				for rows := range a.maxRows() {
					checkTiny(t, rng, a, rows+1)
				}
			}
		}
	})
}

// checkTiny compares a token of some rows with the oracle, on numbers of all sizes: values, which
// end with memory, of the smallest; scores that are small until they are scaled, so that
// probabilities have all sizes.
func checkTiny(t *testing.T, rng *rand.Rand, a *Attention, rows int) {
	t.Helper()
	l := a.layout
	c := newAttentionCase(t, rng, l, 1, rows, rng.IntN(100))
	c.kv = append(kerneltest.Guarded(t, len(c.kv))[:0], c.kv...)
	size := func(lo, hi int) float32 {
		return float32(math.Ldexp(rng.NormFloat64(), lo+rng.IntN(hi-lo)))
	}
	for i := range c.q {
		c.q[i] = size(-130, -30)
	}
	x, pair := make([]float32, 2*l.HeadDim), l.KBytes()+l.VBytes()
	for p := range c.pos + 1 {
		for d := range l.HeadDim {
			x[d], x[l.HeadDim+d] = size(-78, -20), size(-140, -100)
			if l.Elem != KVF32 {
				x[d], x[l.HeadDim+d] = size(-24, -18), size(-26, 0)
			}
		}
		k := unsafe.Pointer(&c.kv[int(c.table[p/KVBlock])*pair])
		v := Ref()
		v.StoreK(l, k, p%KVBlock, p0(x), 1, l.HeadDim)
		v.StoreV(l, unsafe.Add(k, l.KBytes()), p%KVBlock, p0(x[l.HeadDim:]), 1, l.HeadDim)
	}
	got, want := c.out(), c.out()
	for _, scale := range []float32{1, 0x1p53, 0x1p57, 0x1p100} {
		job := c.job(0, 1, got)
		job.Scale = scale
		scratch := kerneltest.Guarded(t, a.ScratchBytes())
		for i := range scratch {
			scratch[i] = 0xff
		}
		a.Run(job, unsafe.Pointer(&scratch[0]))
		job.Out = p0(want)
		refAttention(l, a.form.Dot, job)
		wantSame(t, fmt.Sprintf("%v by %s: %d rows at %d, scaled by %g", l, a.form.Dot, rows, c.pos, scale), got, want)
	}
}
