package vec

import (
	"math"
	"testing"

	"sandwich/microkernel/internal/jit"
)

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
