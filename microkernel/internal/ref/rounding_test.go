package ref

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"sandwich/microkernel/qtype"
)

// TestFMA32IsExact compares with exact arithmetic on operands chosen so that double rounding would
// show.
func TestFMA32IsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	bits := func(lo, hi int) float32 { // a float32 of few random bits with an exponent in [lo, hi]
		m := 1 + float64(rng.Uint32()&(1<<rng.IntN(24)-1)<<rng.IntN(2))/(1<<24)
		return float32(math.Ldexp(math.Copysign(m, float64(rng.IntN(2))-0.5), lo+rng.IntN(hi-lo+1)))
	}
	for range 300000 {
		a, b := bits(-80, 20), bits(-80, 20)
		c := float32(a*b) * float32(math.Ldexp(1, rng.IntN(60)-30))
		if rng.IntN(3) == 0 {
			c = bits(-149, 20)
		}
		x := new(big.Float).SetPrec(400).SetFloat64(float64(a))
		x.Mul(x, new(big.Float).SetPrec(400).SetFloat64(float64(b)))
		x.Add(x, new(big.Float).SetPrec(400).SetFloat64(float64(c)))
		want, _ := x.Float32()
		if got := FMA32(a, b, c); got != want {
			t.Fatalf("FMA32(%x, %x, %x) = %x, want %x", a, b, c, got, want)
		}
	}
	inf := float32(math.Inf(1))
	if FMA32(inf, 1, -inf) == FMA32(inf, 1, -inf) || FMA32(inf, 1, 1) != inf || FMA32(math.MaxFloat32, 2, 0) != inf {
		t.Error("infinities: want NaN for inf-inf, inf for inf+1 and for overflow")
	}
	if z := FMA32(-1, 0, 0); math.Signbit(float64(z)) ||
		!math.Signbit(float64(FMA32(-1, 0, float32(math.Copysign(0, -1))))) {
		t.Error("sign of an exact zero")
	}
}

// TestHalfRoundTrip checks that every float16 survives the conversion to float32 and back, and that
// rounding agrees with a search for the nearest float16.
func TestHalfRoundTrip(t *testing.T) {
	for h := 0; h < 1<<16; h++ {
		f := qtype.FloatFromHalf(uint16(h))
		back := HalfFromFloat(f)
		if f != f {
			if back != uint16(h)|0x200 {
				t.Fatalf("NaN %#04x comes back as %#04x", h, back)
			}
			continue
		}
		if back != uint16(h) {
			t.Fatalf("%#04x (%g) comes back as %#04x", h, f, back)
		}
		if h&0x7fff >= 0x7bff {
			continue
		}
		// Half way to the next half: the even one; a step of float32 beyond it: the next.
		mid := (float64(f) + float64(qtype.FloatFromHalf(uint16(h+1)))) / 2
		even := uint16(h) + uint16(h)&1
		if got := HalfFromFloat(float32(mid)); got != even {
			t.Fatalf("midpoint above %#04x rounds to %#04x", h, got)
		}
		up := math.Nextafter32(float32(mid), float32(math.Copysign(math.Inf(1), mid)))
		if got := HalfFromFloat(up); got != uint16(h)+1 {
			t.Fatalf("above the midpoint of %#04x rounds to %#04x", h, got)
		}
	}
	if HalfFromFloat(65520) != 0x7c00 || HalfFromFloat(math.Nextafter32(65520, 0)) != 0x7bff {
		t.Error("overflow begins at 65520")
	}
}

// TestRoundBF16 checks the definition: to nearest, ties to even, and special values.
func TestRoundBF16(t *testing.T) {
	for in, want := range map[uint32]uint16{
		0x3F800000: 0x3F80, 0x3F807FFF: 0x3F80, 0x3F808000: 0x3F80, 0x3F808001: 0x3F81, 0x3F818000: 0x3F82,
		0xBF818000: 0xBF82,
		// an infinity
		0x7F7F7FFF: 0x7F7F, 0x7F7F8000: 0x7F80, 0xFF7FFFFF: 0xFF80, 0x7F800000: 0x7F80, 0xFF800000: 0xFF80,
		0x7F800001: 0x7FC0, 0xFFA00000: 0xFFE0, 0x7FFFFFFF: 0x7FFF, // a NaN
		0x00000001: 0, 0x807FFFFF: 0x8000, 0x00800000: 0x0080, // zeros
	} {
		if got := RoundBF16(math.Float32frombits(in)); got != want {
			t.Errorf("%#08x becomes %#04x, want %#04x", in, got, want)
		}
	}
}
