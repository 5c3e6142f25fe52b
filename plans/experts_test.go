package plans_test

import (
	"math"
	"testing"

	"sandwich/plans"
)

// TestExpertsThatAreNotRoutedCostNothing counts the matrices of qwen3-30b-a3b: 48 layers of 128
// experts, 8 a row.
func TestExpertsThatAreNotRoutedCostNothing(t *testing.T) {
	s := plans.ModelShape{Layers: 48, Experts: 128, ExpertsUsed: 8}
	up := plans.WeightShape{Role: "up", N: 768, K: 2048, Type: "q4_k", Count: 48 * 128}
	if got := s.PerRow(up); got != 48*8 {
		t.Errorf("a row meets %g experts, want %d", got, 48*8)
	}
	for m, want := range map[int]float64{0: 0, 1: 8, 2: 15.5, 16: 82.42, 512: 128} {
		if got := s.Read(up, m) / 48; math.Abs(got-want) > 0.01 {
			t.Errorf("%d rows read %.2f experts a layer, want %.2f", m, got, want)
		}
	}
	q := plans.WeightShape{Role: "q", N: 4096, K: 2048, Type: "q4_k", Count: 48}
	if s.PerRow(q) != 48 || s.Read(q, 1) != 48 {
		t.Error("every row meets every q")
	}
	if dense := (plans.ModelShape{}); dense.PerRow(up) != 48*128 || dense.Read(up, 1) != 48*128 {
		t.Error("a dense model has experts")
	}
}
