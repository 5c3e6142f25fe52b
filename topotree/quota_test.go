package topotree

import (
	"testing"
)

func TestQuotaPUs(t *testing.T) {
	for cpus, want := range map[float64]int{0: 0, 0.2: 1, 1: 1, 1.05: 1, 1.2: 2, 1.5: 2, 2: 2, 2.5: 3, 64: 64} {
		if got := QuotaPUs(cpus); got != want {
			t.Errorf("a quota of %g CPUs pays for %d PUs, want %d", cpus, got, want)
		}
	}
}
