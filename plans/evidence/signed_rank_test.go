package evidence

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The chance is that of counting: of all ways to give signs to the differences, those whose ranks
// above zero sum to as much or more.
func TestChanceByCounting(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 1; n <= 12; n++ {
		x := make([]float64, n)
		for i := range x {
			x[i] = rng.NormFloat64() + 0.3
		}
		sizes := make([]float64, n)
		for i, v := range x {
			sizes[i] = math.Abs(v)
		}
		slices.Sort(sizes)
		above := 0
		for _, v := range x {
			if v > 0 {
				above += 1 + slices.Index(sizes, v)
			}
		}
		count := 0
		for ways := range 1 << n {
			sum := 0
			for i := range n {
				sum += ways >> i & 1 * (i + 1)
			}
			if sum >= above {
				count++
			}
		}
		if got, want := chance(x), float64(count)/float64(int(1)<<n); math.Abs(got-want) > 1e-12 {
			t.Errorf("n %d: %v, counting says %v", n, got, want)
		}
	}
	if p := chance([]float64{0, 0, 0}); p != 1 {
		t.Errorf("differences of nothing: %v", p)
	}
	if p := chance([]float64{1, 1, 1, -1}); p != 5./16 {
		t.Errorf("three of four equal ones above: %v, want 5/16", p)
	}
}

// TestEstimateHolds checks that the interval contains the true median in at least about 95 of 100
// cases, for few rounds and many, with the heavy tails of a busy machine, and that it is narrower
// than the interval of the median alone.
func TestEstimateHolds(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{6, 11, 30, 60} {
		held, narrower, draws := 0, 0.0, 400
		for range draws {
			x := make([]float64, n)
			for i := range x {
				if x[i] = rng.NormFloat64(); rng.IntN(8) == 0 {
					x[i] *= 3
				}
			}
			slices.Sort(x)
			mid, low, high := estimate(x)
			if low > mid || mid > high {
				t.Fatalf("n %d: %v to %v around %v", n, low, high, mid)
			}
			if low <= 0 && high >= 0 {
				held++
			}
			k := MedianRank(n)
			narrower += math.Log((high - low) / (x[n-1-k] - x[k]))
		}
		if share := float64(held) / float64(draws); share < 0.92 {
			t.Errorf("n %d: the interval holds the middle in %.3f of the draws", n, share)
		}
		if ratio := math.Exp(narrower / float64(draws)); n > 6 && ratio > 0.9 {
			t.Errorf("n %d: the interval is %.2f times that of the median", n, ratio)
		}
	}
}

// Many differences take no longer than few: evidence may be a stranger's.
func TestEstimateOfManyDifferences(t *testing.T) {
	x := make([]float64, 1_000_000)
	for i := range x {
		x[i] = float64(i)
	}
	if mid, low, high := estimate(x); mid < low || mid > high || high-low > 3000 {
		t.Errorf("%v, %v to %v", mid, low, high)
	}
	if p := chance(x); p > 1e-9 {
		t.Errorf("a million of gains happen by chance with %v", p)
	}
}
