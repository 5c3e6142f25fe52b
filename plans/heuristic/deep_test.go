package heuristic

import (
	"math"
	"testing"

	"sandwich/plans/internal/hosttest"
	"sandwich/profiles"
)

// TestDeepBlocksByMeasuredRate checks that few rows use deep blocks of weights if the machine was
// measured to be faster with them by more than noise, and that more rows have their own block size.
func TestDeepBlocksByMeasuredRate(t *testing.T) {
	depth := func(weights string, m int, shallow, deep float64) int {
		h := hosttest.Cores(t, 2, "avx2", "avx512", "avx512_vnni")
		for level, rate := range map[string]float64{profiles.WeightsShallow: shallow, profiles.WeightsDeep: deep} {
			if rate > 0 {
				h.Ceilings = append(h.Ceilings, profiles.Ceiling{Kind: profiles.Bandwidth, Level: level, PUs: 1,
					Figure: profiles.Figure{Median: rate, N: 9, Unit: "B/s"}})
			}
		}
		for typ, rate := range map[string]float64{"f32": 1e11, "int8": 4e11} {
			h.Ceilings = append(h.Ceilings, profiles.Ceiling{Kind: profiles.Compute, ISA: "avx512", Type: typ, PUs: 1,
				Figure: profiles.Figure{Median: rate, Max: rate, N: 9, Unit: "OP/s"}})
		}
		p := mustDefault(t, h, decoder("deep", weights, 4096, 32, 8, 11008, 32000), Options{})
		s, ok := p.Prefill.Lookup(p.Prefill.Tables[0].WeightKey, m)
		if !ok || !s.Kernel.Spread {
			t.Fatalf("%s with %d rows: %s", weights, m, s)
		}
		return s.BK
	}
	for _, c := range []struct {
		weights string
		m       int
	}{{"f32", 23}, {"q8_0", 9}, {"q4_0", 16}, {"q8_0", 64}} {
		shallow := depth(c.weights, c.m, 0, 0)
		for name, x := range map[string]struct {
			shallow, deep float64
			more          bool
		}{
			"deep is faster": {18e9, 20e9, true}, "by noise": {18e9, 18.3e9, false},
			"shallow is faster": {20e9, 18e9, false},
			"half known":        {0, 20e9, false}, "without end": {math.Inf(1), 20e9, false},
			"both without end": {math.Inf(1), math.Inf(1), false},
		} {
			if got := depth(c.weights, c.m, x.shallow, x.deep); (got > 2*shallow || got == 0) != x.more {
				t.Errorf("%s with %d rows, %s: blocks of %d k, where nothing is known %d", c.weights, c.m, name, got,
					shallow)
			}
		}
	}
	if a, b := depth("q8_0", 96, 18e9, 20e9), depth("q8_0", 96, 20e9, 18e9); a != b {
		t.Errorf("with 96 rows blocks of %d and %d k", a, b)
	}
}
