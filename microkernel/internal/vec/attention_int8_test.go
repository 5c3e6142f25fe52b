package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/internal/kerneltest"
	"sandwich/microkernel/internal/ref"
)

// TestAttentionOfIntegers checks that every number of rows has the bits of the oracle, with VPERMB
// and without, on unpacked and on cached blocks, for scales of all sizes, infinite and NaN, and for
// values that are all zeros.
func TestAttentionOfIntegers(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	isa := kernel.Host().Best()
	if !AttendDPBUSD.On(isa, kernel.Host()) || isa == kernel.Go {
		t.Skipf("this CPU (%s) has no VPDPBUSD for attention; use one with avx512_vnni", kernel.Host())
	}
	for _, dim := range []int{32, 64, 96, 128, 256, 288} {
		for _, cpu := range []kernel.Features{kernel.Host(), kernel.Host() &^ kernel.HasVBMI} {
			a, err := buildAttention(isa, KVLayout{HeadDim: dim, Elem: KVQ8}, AttentionForm{Dot: AttendDPBUSD}, cpu)
			if err != nil {
				t.Fatal(err)
			}
			for rows := 1; rows <= 2*a.maxRows()+1; rows++ {
				c := newAttentionCase(t, rng, a.layout, 1, rows, rng.IntN(200))
				c.rescale(rng)
				checkIntegers(t, a, c)
			}
		}
	}
}

// rescale gives the cache scales of all sizes, and zeros for some positions.
func (c *attentionCase) rescale(rng *rand.Rand) {
	l := c.layout
	scale := func() float32 {
		switch rng.IntN(12) {
		case 0:
			return 0
		case 1:
			return float32(math.Ldexp(1, -24)) // subnormal
		case 2:
			return 65504
		}
		return float32(math.Ldexp(1+rng.Float64(), rng.IntN(30)-20))
	}
	infinite := rng.IntN(4) == 0
	for p := range c.pos + c.tokens {
		k := unsafe.Pointer(&c.kv[int(c.table[p/KVBlock])*(l.KBytes()+l.VBytes())])
		v := unsafe.Add(k, l.KBytes())
		zero := rng.IntN(9) == 0
		for d := range l.HeadDim {
			if zero {
				*(*int8)(unsafe.Add(v, l.vIndex(p%KVBlock, d))) = 0
			}
			if d%kvScaleDims > 0 {
				continue
			}
			at := l.scaleOf(p%KVBlock, d)
			*(*uint16)(unsafe.Add(v, at)) = ref.HalfFromFloat(scale())
			if infinite && rng.IntN(20) == 0 {
				*(*uint16)(unsafe.Add(v, at)) = ref.HalfFromFloat(float32(math.Inf(1)))
			}
			if rng.IntN(4) == 0 { // keys that leave others nothing, or next to nothing
				*(*uint16)(unsafe.Add(k, at)) = ref.HalfFromFloat(scale())
			}
		}
	}
}

// checkIntegers compares a job with the oracle.
func checkIntegers(t *testing.T, a *Attention, c *attentionCase) {
	t.Helper()
	scratch := kerneltest.Guarded(t, a.ScratchBytes())
	for i := range scratch {
		scratch[i] = 0xff
	}
	got, want := c.out(), c.out()
	a.Run(c.job(0, c.tokens, got), unsafe.Pointer(&scratch[0]))
	refAttention(a.layout, a.form.Dot, c.job(0, c.tokens, want))
	wantSame(t, fmt.Sprintf("%v on %s: %d rows at %d", a.layout, a.cpu, c.group, c.pos), got, want)
}

// TestRefWeights checks that weights have 255 steps up to the largest one, and that NaN counts as
// zero.
func TestRefWeights(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		p, scale [4]float32
		want     [4]int32
		step     float32
	}{
		{[4]float32{1, 0.5, 0, 0.001}, [4]float32{1, 1, 1, 1}, [4]int32{255, 128, 0, 0}, arith.ProbabilityStep},
		{[4]float32{1, 1, 1, 1}, [4]float32{0, 0, 0, 0}, [4]int32{}, 0x1p-100 * arith.ProbabilityStep},
		{[4]float32{1, 0, 0.25, 0}, [4]float32{2, nan, 8, inf}, [4]int32{255, 0, 255, 0}, 2 * arith.ProbabilityStep},
		{[4]float32{0.5, 0.5, 0, 0}, [4]float32{3, inf, 0, 0}, [4]int32{}, inf},
	} {
		u, step := refWeights(c.p[:], func(pos int) float32 { return c.scale[pos] })
		if [4]int32(u[:4]) != c.want || step != c.step {
			t.Errorf("%v times %v: %v by %g, want %v by %g", c.p, c.scale, u[:4], step, c.want, c.step)
		}
	}
}
