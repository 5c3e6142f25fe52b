package evidence_test

import (
	"math"
	"strings"
	"testing"

	"sandwich/plans/bundle"
	"sandwich/plans/evidence"
	"sandwich/plans/internal/bundletest"
	"sandwich/plans/internal/plantest"
)

func TestOutcomes(t *testing.T) {
	samples := map[string][]float64{
		evidence.ArmDefault:  {100, 90, 110, 100, 95, 100, 100, 80},
		evidence.ArmAgain:    {101, 91, 108, 100, 96, 99, 100, 81},
		evidence.ArmUnpinned: {50, 50, 50, 50, 50, 50, 50, 50},
		"tuned on PUs 0-1":   {112, 101, 122, 113, 107, 112, 112, 90},
	}
	e := plantest.Race("prefill", "tuned on PUs 0-1", plantest.RaceNames, samples)
	o := e.Outcomes()
	if len(o) != 1 || o[0].Kept || o[0].Arm != "tuned on PUs 0-1" || o[0].Gain.Rounds != 8 {
		t.Fatalf("%+v", o)
	}
	g := o[0].Gain
	if math.Abs(g.Median-0.12) > 0.01 || g.Low < 0.1 || g.High > 0.14 || !g.Beats(o[0].Noise) || o[0].Noise > 0.02 {
		t.Errorf("%+v", o[0])
	}
	e = plantest.Race("decode", evidence.ArmDefault, plantest.RaceNames, samples)
	if o = e.Outcomes(); len(o) != 1 || !o[0].Kept || math.Abs(o[0].Gain.Median-0.12) > 0.01 || o[0].Over() != 0 {
		t.Errorf("the default kept: %+v", o)
	}
}

// One round says nothing about the noise, and few say little: only a plain gain counts.
func TestFewRoundsDecideLittle(t *testing.T) {
	arm := func(samples ...float64) []evidence.Arm { return []evidence.Arm{{Test: "pp64", Samples: samples}} }
	noise := evidence.Noise(arm(100), arm(100))
	if g := evidence.GainOver(arm(100), arm(107)); g.Rounds != 1 || g.Beats(noise) {
		t.Errorf("one round: %+v beats %v", g, noise)
	}
	if g := evidence.GainOver(arm(100), arm(120)); !g.Beats(noise) {
		t.Errorf("one round of 20 %%: %+v does not beat %v", g, noise)
	}
	noise = evidence.Noise(arm(100, 100, 100, 100), arm(101, 99, 100, 102))
	if g := evidence.GainOver(arm(100, 100, 100, 100), arm(105, 106, 104, 99)); g.Beats(noise) {
		t.Errorf("slower in a round of four: %+v beats %v", g, noise)
	}
}

// TestGainOfDistinctTests checks that the speeds of distinct tests are not compared.
func TestGainOfDistinctTests(t *testing.T) {
	a := []evidence.Arm{{Test: "pp64", Samples: []float64{1, 2}}}
	b := []evidence.Arm{{Test: "pp512", Samples: []float64{3, 4}}}
	if g := evidence.GainOver(a, b); g != (evidence.Gain{}) {
		t.Errorf("%+v", g)
	}
}

// Evidence of a stranger does not make figures that JSON cannot hold.
func TestGainOfHostileSamples(t *testing.T) {
	arm := func(samples ...float64) []evidence.Arm { return []evidence.Arm{{Test: "pp64", Samples: samples}} }
	for name, g := range map[string]evidence.Gain{
		"zero":     evidence.GainOver(arm(0, 0), arm(1, 1)),
		"negative": evidence.GainOver(arm(-1, 1), arm(1, 1)),
		"huge":     evidence.GainOver(arm(1e-300, 1e-300), arm(1e300, 1e300)),
		"nothing":  evidence.GainOver(arm(), arm()),
		"no arm":   evidence.GainOver(nil, arm(1)),
		"distinct": evidence.GainOver(append(arm(1), arm(1)...), arm(1)),
	} {
		for _, x := range []float64{g.Median, g.Low, g.High} {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				t.Errorf("%s: %+v", name, g)
			}
		}
	}
}

// MedianRank is checked by counting: how many of the 2^n ways to fall on both sides of the median
// the interval misses.
func TestMedianRank(t *testing.T) {
	for n := 1; n <= 15; n++ {
		k := evidence.MedianRank(n)
		missed := func(k int) float64 {
			count := 0
			for ways := range 1 << n {
				below := 0
				for i := range n {
					below += ways >> i & 1
				}
				if below <= k || below >= n-k {
					count++
				}
			}
			return float64(count) / float64(int(1)<<n)
		}
		if n >= 6 && missed(k) > 0.05 {
			t.Errorf("n %d: leaving %d out misses the median %.3f of the time", n, k, missed(k))
		}
		if missed(k+1) <= 0.05 {
			t.Errorf("n %d: more than %d may be left out", n, k)
		}
	}
}

// Evidence of a stranger may have any number of samples. Where the rank is approximated, the
// interval contains the median as often as required, and the rank changes by at most one from one
// number of samples to the next.
func TestMedianRankOfMany(t *testing.T) {
	for n := 900; n < 1200; n++ {
		if a, b := evidence.MedianRank(n), evidence.MedianRank(n+1); b < a || b > a+1 {
			t.Errorf("%d may be left out of %d, and %d of one more", a, n, b)
		}
	}
	for n := 990; n < 1100; n++ {
		k, missed := evidence.MedianRank(n), 0.0
		ways := func(k int) float64 { // logarithm of n over k
			all, _ := math.Lgamma(float64(n + 1))
			below, _ := math.Lgamma(float64(k + 1))
			above, _ := math.Lgamma(float64(n - k + 1))
			return all - below - above
		}
		for below := range k + 1 {
			missed += 2 * math.Exp(ways(below)-float64(n)*math.Ln2)
		}
		if missed > 0.05 {
			t.Errorf("n %d: leaving %d out misses the median %.4f of the time", n, k, missed)
		}
	}
	if k := evidence.MedianRank(1_000_000); k < 498_900 || k > 499_100 {
		t.Errorf("%d of a million", k)
	}
}

func TestState(t *testing.T) {
	b := bundletest.New(t)
	if b.State() != bundle.Tuned {
		t.Errorf("tuned without whole forwards: %s", b.State())
	}
	b.Evidence = plantest.Race("decode", evidence.ArmDefault, []string{evidence.ArmDefault, evidence.ArmAgain},
		map[string][]float64{evidence.ArmDefault: {1}, evidence.ArmAgain: {1}})
	if b.State() != bundle.DefaultKept {
		t.Errorf("nothing beat the default: %s", b.State())
	}
	if b.Plan.Tuned = false; b.State() != bundle.Untuned {
		t.Errorf("never tuned: %s", b.State())
	}
}

// TestRoundsCountOnce checks that evidence with a repeated round number is refused.
func TestRoundsCountOnce(t *testing.T) {
	_, _, e := plantest.Parts(t)
	for want, rounds := range map[string][]int{"": {0, 5}, "ascending order": {3, 3}} {
		e.Finalists[0].Rounds = rounds
		if err := e.Check(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("rounds %v: %v", rounds, err)
		}
	}
}

// Arms that did not run in all rounds are compared by those that both ran in.
func TestGainGoesByRounds(t *testing.T) {
	base := []evidence.Arm{{Samples: []float64{100, 50, 100, 50, 100}}}
	arm := []evidence.Arm{{Samples: []float64{60, 60, 120}, Rounds: []int{1, 3, 4}}}
	g := evidence.GainOver(base, arm)
	if g.Rounds != 3 || math.Abs(g.Median-0.2) > 1e-9 || math.Abs(g.High-g.Low) > 1e-9 {
		t.Errorf("%+v", g)
	}
	if g = evidence.GainOver(arm, base); g.Rounds != 3 || math.Abs(g.Median+1./6) > 1e-9 {
		t.Errorf("the other way: %+v", g)
	}
	arm[0].Rounds = []int{7, 8, 9}
	if g = evidence.GainOver(base, arm); g != (evidence.Gain{}) {
		t.Errorf("no round in common: %+v", g)
	}
}
