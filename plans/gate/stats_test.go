package gate

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func near(a, b, by float64) bool { return math.Abs(a-b) <= by }

// TestMannWhitney compares probabilities with counted ones: with every x below every y, only one of
// the 252 choices of 5 ranks out of 10 is as extreme on either side.
func TestMannWhitney(t *testing.T) {
	for _, c := range []struct {
		x, y []float64
		p    float64
	}{
		{[]float64{1, 2, 3, 4, 5}, []float64{6, 7, 8, 9, 10}, 2.0 / 252},
		{[]float64{1, 2}, []float64{3, 4}, 2.0 / 6},
		{[]float64{1, 3}, []float64{2, 4}, 4.0 / 6},
		{[]float64{1}, []float64{1}, 1},
		{nil, []float64{1}, 1},
	} {
		if got := mannWhitney(c.x, c.y); !near(got, c.p, 1e-12) {
			t.Errorf("%v, %v: p %v, want %v", c.x, c.y, got, c.p)
		}
	}
}

// TestMannWhitneyAgreesWithBruteForce counts all ways to choose ranks, and sets the exact tail
// against the approximation.
func TestMannWhitneyAgreesWithBruteForce(t *testing.T) {
	const n, m = 4, 5
	for u := range n * m / 2 {
		tail, total := 0, 0
		for mask := range 1 << (n + m) {
			sum, taken := 0, 0
			for r := range n + m {
				if mask>>r&1 == 1 {
					sum += r - taken
					taken++
				}
			}
			if taken == n {
				total++
				if sum <= u {
					tail++
				}
			}
		}
		if got, want := exactU(n, m, u), min(1, 2*float64(tail)/float64(total)); !near(got, want, 1e-12) {
			t.Errorf("U %d: %v, counting gives %v", u, got, want)
		}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		var x, y []float64
		for range 20 {
			x, y = append(x, rng.NormFloat64()), append(y, rng.NormFloat64()+0.3)
		}
		exact := mannWhitney(x, y)
		approximate := mannWhitney(append(x, 100), append(y, 100)) // a tie, one above all
		if !near(exact, approximate, 0.1) {
			t.Errorf("exact %v, approximate %v", exact, approximate)
		}
	}
}

func TestHolm(t *testing.T) {
	got := holm([]float64{0.01, 0.04, 0.03, 0.005})
	if want := []float64{0.03, 0.06, 0.06, 0.02}; !slices.EqualFunc(got, want, func(a, b float64) bool {
		return near(a, b, 1e-12)
	}) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestIntervalsHoldTheTruth checks that nearly all intervals with 95 % confidence contain the true
// ratio, for interleaved arms also under a drift that both sides share.
func TestIntervalsHoldTheTruth(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for _, interleaved := range []bool{false, true} {
		held := 0
		const runs = 200
		for range runs {
			var x, y []float64
			for i := range 30 {
				drift := 1.0
				if interleaved {
					drift += float64(i) / 60
				}
				x = append(x, 100*drift*(1+0.03*rng.NormFloat64()))
				y = append(y, 95*drift*(1+0.03*rng.NormFloat64()))
			}
			r := ratio(rounds(x), rounds(y), interleaved)
			if r.Low <= 0.95 && 0.95 <= r.High {
				held++
			}
		}
		if held < runs*90/100 {
			t.Errorf("interleaved %v: %d of %d intervals hold the truth", interleaved, held, runs)
		}
	}
}

// TestRanksOfInvalidSamples checks that the test ends for samples without an order.
func TestRanksOfInvalidSamples(t *testing.T) {
	nan := []float64{math.NaN(), math.NaN()}
	if p := mannWhitney(nan, []float64{1, 2}); !(p >= 0 && p <= 1) {
		t.Errorf("p %v", p)
	}
}

func TestRatioOfNothing(t *testing.T) {
	for _, c := range [][2][]float64{{nil, {1}}, {{0, 0}, {1, 1}}, {{math.NaN()}, {1}}} {
		if got := ratio(rounds(c[0]), rounds(c[1]), true); got != (Interval{}) {
			t.Errorf("%v: %v", c, got)
		}
	}
}
