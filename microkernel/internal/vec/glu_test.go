package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

var units = []GLU{SwiGLU, GeGLU, ClampedSwiGLU, SigmoidGLU}

// TestGLU checks that every gated unit and the soft cap have the bits of their oracles.
func TestGLU(t *testing.T) {
	eachVec(t, func(t *testing.T, v *Vec, rng *rand.Rand) {
		for _, n := range vecLengths {
			for d := ordinary; d <= specials; d++ {
				a, b := guardedF32(t, rng, n, d), guardedF32(t, rng, n, d)
				for i := range a {
					if d == ordinary && rng.IntN(2) == 0 {
						a[i], b[i] = 8*a[i], 8*b[i] // beyond the limits of the clamped unit
					}
				}
				for _, unit := range units {
					what := fmt.Sprintf("unit %d n=%d drawing %d", unit, n, d)
					got, want := poison(guarded[float32](t, n)), poison(make([]float32, n))
					v.GLU(unit, p0(got), p0(a), p0(b), n)
					refGLU(unit, p0(want), p0(a), p0(b), n)
					wantSame(t, what, got, want)
					half := n / 2
					poison(got)
					v.GLURows(unit, p0(got), n-half, p0(a), n-half, p0(b), half, 2, half)
					poison(want)
					refGLU(unit, p0(want), p0(a), p0(b), half)
					refGLU(unit, at(p0(want), n-half), at(p0(a), n-half), at(p0(b), half), half)
					wantSame(t, what+", rows", got, want)
				}
				got := guarded[float32](t, n)
				copy(got, a)
				want := append([]float32(nil), a...)
				v.SoftCap(p0(got), n, 0.3, 5)
				refSoftCap(want, capFactor(0.3, 5), 5)
				wantSame(t, fmt.Sprintf("SoftCap n=%d drawing %d", n, d), got, want)
			}
		}
	})
}

// TestGELU checks that a product without a gate has the bits of GeGLU with ones, in whole rows and
// in parts.
func TestGELU(t *testing.T) {
	eachVec(t, func(t *testing.T, v *Vec, rng *rand.Rand) {
		for _, n := range vecLengths {
			const rows = 3
			stride := n + rng.IntN(5)
			x := guardedF32(t, rng, (rows-1)*stride+n, specials)
			got, want := poison(guarded[float32](t, len(x))), poison(make([]float32, len(x)))
			v.GELURows(p0(got), stride, p0(x), stride, rows, n)
			for r := range rows {
				for i := range n {
					one := float32(1)
					refGLU(GeGLU, at(p0(want), r*stride+i), at(p0(x), r*stride+i), &one, 1)
				}
			}
			wantSame(t, fmt.Sprintf("n=%d", n), got, want)
		}
	})
}

// TestGLUMeaning bounds the distance of the oracles from float64.
func TestGLUMeaning(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	meaning := map[GLU]func(x, y float64) float64{
		SwiGLU: func(x, y float64) float64 { return x / (1 + math.Exp(-x)) * y },
		GeGLU: func(x, y float64) float64 {
			return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))) * y
		},
		ClampedSwiGLU: func(x, y float64) float64 {
			x, y = min(x, 7), max(-7, min(y, 7))
			return x / (1 + math.Exp(-1.702*x)) * (y + 1)
		},
		SigmoidGLU: func(x, y float64) float64 { return 1 / (1 + math.Exp(-x)) * y },
	}
	for range 10000 {
		g, u := float32(3*rng.NormFloat64()), float32(6*rng.NormFloat64())
		for unit, f := range meaning {
			var got float32
			refGLU(unit, &got, &g, &u, 1)
			if want := f(float64(g), float64(u)); math.Abs(float64(got)-want) > 1e-4*math.Abs(want)+1e-9 {
				t.Fatalf("unit %d of %g and %g is %g, want %g", unit, g, u, got, want)
			}
		}
		x := [1]float32{10 * g}
		refSoftCap(x[:], capFactor(0.5, 20), 20)
		if want := 20 * math.Tanh(float64(10*g)*0.5/20); math.Abs(float64(x[0])-want) > 5e-6 {
			t.Fatalf("%g capped is %g, want %g", 10*g, x[0], want)
		}
	}
}
