package microkernel

import (
	"math"
	"math/big"
	"math/rand/v2"
	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/plain"
	"sandwich/microkernel/qtype"
	"testing"
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

// TestExpError walks every 37th float32 in the range of exp (fewer where that is slow) and bounds
// the error in units of the last place.
func TestExpError(t *testing.T) {
	worst, where := 0.0, float32(0)
	check := func(x float32) {
		got, want := float64(exp32(x)), math.Exp(float64(x))
		ulp := math.Ldexp(1, max(math.Ilogb(want)-23, -149))
		if want > math.MaxFloat32 {
			if !math.IsInf(got, 1) && want > 0x1.ffffffp127 {
				t.Fatalf("exp32(%g) = %g, want +Inf", x, got)
			}
			return
		}
		if e := math.Abs(got-want) / ulp; e > worst {
			worst, where = e, x
		}
	}
	step := uint32(37)
	if jit.Race || testing.Short() {
		step = 1999
	}
	for b := uint32(0x30000000); b < 0x42d20000; b += step {
		check(math.Float32frombits(b))
		check(-math.Float32frombits(b))
	}
	if worst > 2 {
		t.Errorf("exp32 is off by %.2f ulp at %g", worst, where)
	}
	t.Logf("worst error %.3f ulp at %g", worst, where)
	inf := math.Inf(1)
	for _, c := range []struct{ x, want float64 }{{0, 1}, {math.Copysign(0, -1), 1}, {-inf, 0}, {inf, inf}, {89, inf},
		{1e30, inf}, {-104, 0}, {-1e30, 0}} {
		if got := exp32(float32(c.x)); float64(got) != c.want {
			t.Errorf("exp32(%g) = %g, want %g", c.x, got, c.want)
		}
	}
	if e := exp32(float32(math.NaN())); e == e {
		t.Errorf("exp32(NaN) = %g", e)
	}
}

// TestHalfRoundTrip: all halves survive, and rounding agrees with a search of the nearest half.
func TestHalfRoundTrip(t *testing.T) {
	for h := 0; h < 1<<16; h++ {
		f := qtype.FloatFromHalf(uint16(h))
		back := plain.HalfFromFloat(f)
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
		if got := plain.HalfFromFloat(float32(mid)); got != even {
			t.Fatalf("midpoint above %#04x rounds to %#04x", h, got)
		}
		up := math.Nextafter32(float32(mid), float32(math.Copysign(math.Inf(1), mid)))
		if got := plain.HalfFromFloat(up); got != uint16(h)+1 {
			t.Fatalf("above the midpoint of %#04x rounds to %#04x", h, got)
		}
	}
	if plain.HalfFromFloat(65520) != 0x7c00 || plain.HalfFromFloat(math.Nextafter32(65520, 0)) != 0x7bff {
		t.Error("overflow begins at 65520")
	}
}
