package heuristic

import (
	"math"
	"testing"

	"sandwich/plans/internal/hosttest"
	"sandwich/profiles"
)

// TestAskingAheadByMeasuredRate checks that single rows of types that are cheap to unpack prefetch
// their weights unless the machine was measured to read slower with it. The prefetch distance of
// other types, and of products of many rows, does not depend on that measurement.
func TestAskingAheadByMeasuredRate(t *testing.T) {
	ahead := func(weights string, m int, never, once float64) int {
		h := hosttest.Cores(t, 2, "avx2", "avx512", "avx512_vnni")
		for level, rate := range map[string]float64{profiles.Weights: never, profiles.WeightsAhead: once} {
			if rate > 0 {
				h.Ceilings = append(h.Ceilings, profiles.Ceiling{Kind: profiles.Bandwidth, Level: level, PUs: 1,
					Figure: profiles.Figure{Median: rate, N: 9, Unit: "B/s"}})
			}
		}
		for typ, rate := range map[string]float64{"f32": 1e11, "int8": 4e11} {
			h.Ceilings = append(h.Ceilings, profiles.Ceiling{Kind: profiles.Compute, ISA: "avx512", Type: typ, PUs: 1,
				Figure: profiles.Figure{Median: rate, Max: rate, N: 9, Unit: "OP/s"}})
		}
		p := mustDefault(t, h, llama160m(weights), Options{})
		s, ok := p.Decode.Lookup(p.Decode.Tables[0].WeightKey, m)
		if !ok {
			t.Fatal("no schedule")
		}
		return s.Kernel.Prefetch
	}
	for name, c := range map[string]struct {
		never, once float64
		want        int
	}{
		"faster": {20e9, 24e9, 1024}, "slower": {24e9, 20e9, 0}, "unknown": {0, 0, 1024}, "half known": {0, 20e9, 1024},
		"without end": {math.Inf(1), 20e9, 1024}, "both without end": {math.Inf(1), math.Inf(1), 1024},
	} {
		for _, weights := range []string{"f32", "q8_0"} {
			if got := ahead(weights, 1, c.never, c.once); got != c.want {
				t.Errorf("%s, %s: asks %d bytes ahead, want %d", name, weights, got, c.want)
			}
		}
		if got := ahead("q4_k", 1, c.never, c.once); got != 4096 {
			t.Errorf("%s, q4_K: asks %d bytes ahead", name, got)
		}
	}
	for _, c := range []struct {
		weights        string
		m              int
		slower, faster int // where asking ahead makes single rows slower, and where it does not
	}{{"f32", 4, 0, 4096}, {"f32", 6, 4096, 4096}, {"q8_0", 3, 0, 4096}, {"q4_0", 4, 5440, 5440}} {
		if got := ahead(c.weights, c.m, 28e9, 24e9); got != c.slower {
			t.Errorf("%d rows of %s ask %d bytes ahead where that is slower, want %d", c.m, c.weights, got, c.slower)
		}
		if got := ahead(c.weights, c.m, 24e9, 28e9); got != c.faster {
			t.Errorf("%d rows of %s ask %d bytes ahead where that is faster, want %d", c.m, c.weights, got, c.faster)
		}
	}
}
