package topotree

import (
	"math"
	"testing"
)

func TestQuotaPUs(t *testing.T) {
	for cpus, want := range map[float64]int{0: 0, 0.2: 1, 1: 1, 1.05: 1, 1.2: 2, 1.5: 2, 2: 2, 2.5: 3, 64: 64,
		1e300: math.MaxInt32, math.Inf(1): math.MaxInt32, math.NaN(): 0} {
		if got := QuotaPUs(cpus); got != want {
			t.Errorf("a quota of %g CPUs pays for %d PUs, want %d", cpus, got, want)
		}
	}
}
