package vec

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/internal/ref"
)

// TestAttentionDotMeaning checks that the oracle computes attention with every dot product, with
// the error of rounding its factors to bfloat16 or to eight bits and not a smaller one.
func TestAttentionDotMeaning(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	for dot, l := range map[AttentionDot]KVLayout{AttendDPBF16: {HeadDim: 72}, AttendTDPBF16: {HeadDim: 72},
		AttendDPBUSD: {HeadDim: 96, Elem: KVQ8}} {
		c := newAttentionCase(t, rng, l, 3, 2, 150)
		c.sinks = []float32{0.5, -1}
		out, worst := c.out(), 0.0
		refAttention(l, dot, c.job(0, c.tokens, out))
		for r := range c.tokens * c.group {
			for d, w := range c.meaning(r) {
				worst = max(worst, math.Abs(float64(out[r*l.HeadDim+d])-w))
			}
		}
		if worst > 0.01 || worst < 1e-5 {
			t.Errorf("%s: an error of %g", dot, worst)
		}
	}
}

// TestAttentionDotNames checks that names are parsed, and that the error for another name lists the
// valid ones.
func TestAttentionDotNames(t *testing.T) {
	for _, d := range AttentionDots() {
		if got, err := ParseAttentionDot(d.String()); err != nil || got != d {
			t.Errorf("%s: %v, %v", d, got, err)
		}
	}
	for _, bad := range []string{"", "F32", "bf16", AttentionDot(99).String()} {
		if d, err := ParseAttentionDot(bad); err == nil {
			t.Errorf("%q is %s", bad, d)
		}
	}
}

// TestAttentionDotNeedsItsCPU checks that a dot product that the instruction set lacks is refused
// and not replaced.
func TestAttentionDotNeedsItsCPU(t *testing.T) {
	for _, isa := range kernel.Host().ISAs() {
		for _, d := range AttentionDots() {
			l := KVLayout{HeadDim: 64, Elem: KVF16}
			if d == AttendDPBUSD {
				if _, err := NewAttention(isa, l, AttentionForm{Dot: d}); err == nil {
					t.Errorf("%s adds up half precision", d)
				}
				l.Elem = KVQ8
			}
			_, err := NewAttention(isa, l, AttentionForm{Dot: d})
			if ok := d.On(isa, kernel.Host()); isa != kernel.Go && (err == nil) != ok {
				t.Errorf("%s on %s: %v", d, isa, err)
			}
		}
	}
	if AttendTDPBF16.On(kernel.AVX2, kernel.Host()) || AttendF32.Needs() != 0 || !AttendF32.Exact() ||
		AttendDPBF16.Exact() {
		t.Error("AVX2 has no tiles, and bfloat16 is not exact")
	}
	if !AttendDPBUSD.Exact() || AttendDPBUSD.On(kernel.AVX512, kernel.Host()&^kernel.HasVNNI) ||
		AttendDPBUSD.On(kernel.AVX2, kernel.Host()) {
		t.Error("integers are exact, and need AVX-512 with VNNI")
	}
}

// TestRoundedCacheAllocates checks that storing a token does not allocate, for every head
// dimension.
func TestRoundedCacheAllocates(t *testing.T) {
	eachVec(t, func(t *testing.T, v *Vec, rng *rand.Rand) {
		if !v.has(kernel.OpStoreK16BF16) {
			return
		}
		l := KVLayout{HeadDim: 130, Elem: KVF16}.For(AttendDPBF16)
		block := make([]byte, l.KBytes()+l.VBytes())
		x := make([]float32, l.HeadDim)
		k := unsafe.Pointer(&block[0])
		if n := testing.AllocsPerRun(10, func() {
			v.StoreK(l, k, 7, p0(x), 1, 0)
			v.StoreV(l, unsafe.Add(k, l.KBytes()), 7, p0(x), 1, 0)
		}); n > 0 {
			t.Errorf("%g allocations", n)
		}
	})
}

// TestRoundedCache checks that a cache for dot products stores exact bfloat16 values within the
// range of half precision.
func TestRoundedCache(t *testing.T) {
	eachVec(t, func(t *testing.T, v *Vec, rng *rand.Rand) {
		dims := []int{1, 50, 64, 128, 145}[rng.IntN(5)]
		l, stride := KVLayout{HeadDim: dims, Elem: KVF16}.For(AttendDPBF16), dims+10
		block := guarded[byte](t, l.KBytes()+l.VBytes())
		x := make([]float32, 3*stride)
		draw(rng, x, ordinary)
		k := unsafe.Pointer(&block[0])
		v.StoreK(l, k, 7, p0(x), 3, stride)
		v.StoreV(l, unsafe.Add(k, l.KBytes()), 7, p0(x), 3, stride)
		for token := range 3 {
			for d := range l.HeadDim {
				want := ref.FromBF16(ref.RoundBF16(x[token*stride+d]))
				if abs := math.Abs(float64(want)); abs < 0x1p-16 {
					continue // fewer bits in half precision
				}
				gotK, gotV := l.getK(k, 7+token, d), l.getV(unsafe.Add(k, l.KBytes()), 7+token, d)
				if gotK != want || gotV != want {
					t.Fatalf("%g is stored as %g and %g, want %g", x[token*stride+d], gotK, gotV, want)
				}
			}
		}
	})
	if (KVLayout{64, KVF16, false}).For(AttendDPBUSD).Rounded ||
		(KVLayout{64, KVQ8, false}).For(AttendTDPBF16).Rounded || (KVLayout{64, KVF16, false}).For(AttendF32).Rounded {
		t.Error("only half precision for dot products is rounded")
	}
}
