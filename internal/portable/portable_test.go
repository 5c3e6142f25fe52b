package portable

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
)

// values draws arguments of all functions and calls fn with each result and that of package math.
func values(fn func(name string, x, y, got, want float64)) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 40_000 {
		x := math.Ldexp(rng.Float64(), rng.IntN(24)-4)
		base := []float64{10000, 1e6, 5e5, 150000, 1 + 1e6*rng.Float64()}[i%5]
		y := -2 * float64(rng.IntN(128)) / []float64{64, 80, 96, 128, 256}[rng.IntN(5)]
		if i%3 == 0 {
			y = 4 * (rng.Float64() - 0.5)
		}
		sin, cos := Sincos(x)
		wantSin, wantCos := math.Sincos(x)
		fn("sin", x, 0, sin, wantSin)
		fn("cos", x, 0, cos, wantCos)
		fn("pow", base, y, Pow(base, y), math.Pow(base, y))
		fn("log", x, 0, Log(x), math.Log(x))
		e := 60 * (rng.Float64() - 0.5)
		fn("exp", e, 0, Exp(e), math.Exp(e))
	}
	for _, x := range []float64{0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 1e-300, 709, -699, 1e9, math.Inf(1),
		math.Inf(-1), math.NaN()} {
		sin, cos := Sincos(x)
		wantSin, wantCos := math.Sincos(x)
		fn("sin", x, 0, sin, wantSin)
		fn("cos", x, 0, cos, wantCos)
		fn("exp", x, 0, Exp(x), math.Exp(x))
		fn("log", x, 0, Log(x), math.Log(x))
		for _, y := range []float64{0, 1, 0.5, -0.5, -1, 2.5, -70, 400, math.Inf(1), math.NaN()} {
			fn("pow", x, y, Pow(x, y), math.Pow(x, y))
		}
	}
}

// TestSameAsMath checks that all functions give the bits of package math on amd64, and are close to
// it elsewhere.
func TestSameAsMath(t *testing.T) {
	differ := map[string]int{}
	values(func(name string, x, y, got, want float64) {
		a, b := math.Float64bits(got), math.Float64bits(want)
		if a == b || math.IsNaN(got) && math.IsNaN(want) {
			return
		}
		if runtime.GOARCH == "amd64" || math.Abs(got-want) > 1e-14*max(1, math.Abs(want)) {
			if differ[name]++; differ[name] < 4 {
				t.Errorf("%s(%v, %v) = %x, math gives %x", name, x, y, got, want)
			}
		}
	})
}

// TestSameOnEveryArchitecture checks the bits against the recorded hash.
func TestSameOnEveryArchitecture(t *testing.T) {
	const want = "3a3031265c4a81dfe0597baa1c523b158d65ac5196c95b397dd158ae920caca9"
	sum := sha256.New()
	values(func(_ string, _, _, got, _ float64) {
		if math.IsNaN(got) {
			got = 0
		}
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], math.Float64bits(got))
		sum.Write(b[:])
	})
	if got := fmt.Sprintf("%x", sum.Sum(nil)); got != want {
		t.Errorf("the results have the hash %s, want %s", got, want)
	}
}
