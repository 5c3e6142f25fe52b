package gate

import (
	"math"
	"math/rand/v2"
	"testing"
)

// wandering is a row of rounds on a machine whose level wanders from round to round, and whose
// samples now and then come late, as on virtual PUs that share memory with others.
func wandering(seed uint64, n int, candidate float64) Row {
	rng := rand.New(rand.NewPCG(seed, 5))
	r, level := Row{Name: "tg batch 8"}, 0.0
	one := func() float64 {
		late := 0.0
		if rng.IntN(10) == 0 {
			late = 0.4 * rng.Float64()
		}
		return 100 * math.Exp(level+0.05*rng.NormFloat64()-late)
	}
	for range n {
		level = 0.65*level + 0.08*rng.NormFloat64()
		r.Baseline, r.Again = append(r.Baseline, one()), append(r.Again, one())
		r.Candidate = append(r.Candidate, candidate*one())
	}
	return r
}

// TestLevelsThatWander checks that a disturbance that affects all arms of a round equally neither
// hides a slowdown of 5 % nor causes one, and does not make a runner unfit.
func TestLevelsThatWander(t *testing.T) {
	const runs, rounds = 60, 120
	found := map[float64]map[Finding]int{}
	held, middle := 0, 0.0
	for _, speed := range []float64{0.95, 1, 1.05} {
		found[speed] = map[Finding]int{}
		for seed := range uint64(runs) {
			v := judgeOne(wandering(seed, rounds, speed))
			found[speed][v.Finding]++
			if v.Ratio.Low <= speed && speed <= v.Ratio.High {
				held++
			}
			middle += math.Log(v.Ratio.Median/speed) / (3 * runs)
		}
	}
	if n := found[0.95][Regressed]; n < runs*28/30 {
		t.Errorf("slower by 5 %%: %v", found[0.95])
	}
	if n := found[1][Regressed]; n > 0 || found[1][Fine]+found[1][Improved] < runs*28/30 {
		t.Errorf("equal: %v", found[1])
	}
	if n := found[1.05][Improved]; n < runs*28/30 {
		t.Errorf("faster by 5 %%: %v", found[1.05])
	}
	if held < 3*runs*90/100 || math.Abs(middle) > 0.002 {
		t.Errorf("%d of %d intervals hold the truth, which estimates miss by %.4f on average", held, 3*runs, middle)
	}
}

// TestRankTestAgreesWithExchanges sets the probability against that of labels that are exchanged
// within rounds at random.
func TestRankTestAgreesWithExchanges(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for seed := range uint64(20) {
		r := wandering(seed, 20, 0.98)
		x, y := r.base(), rounds(r.Candidate)
		p := rankTest(x, y)
		if q := rankTest(y, x); !near(p, q, 1e-12) {
			t.Errorf("sides exchanged: %v and %v", p, q)
		}
		seen := overOf(x, y)
		const draws = 4000
		further := 0
		for range draws {
			ex, ey := make(arm, len(x)), make(arm, len(y))
			for i := range x {
				all := []float64{x[i][0], x[i][1], y[i][0]}
				rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
				ex[i], ey[i] = all[:2], all[2:]
			}
			if math.Abs(overOf(ex, ey)) >= math.Abs(seen)-1e-9 {
				further++
			}
		}
		if want := float64(further) / draws; !near(p, want, 0.03) {
			t.Errorf("seed %d: p %.3f, exchanging labels gives %.3f", seed, p, want)
		}
	}
	for _, c := range [][2]arm{{rounds([]float64{1, 2}), rounds([]float64{1, 2})}, {nil, nil},
		{rounds([]float64{0, 1}), rounds([]float64{1, 1})}} {
		if p := rankTest(c[0], c[1]); p != 1 {
			t.Errorf("%v: p %v, want 1", c, p)
		}
	}
}

func overOf(x, y arm) float64 {
	var list []aligned
	for i := range x {
		level := (math.Log(x[i][0]) + math.Log(x[i][1]) + math.Log(y[i][0])) / 3
		list = append(list, aligned{math.Log(x[i][0]) - level, i, false}, aligned{math.Log(x[i][1]) - level, i, false},
			aligned{math.Log(y[i][0]) - level, i, true})
	}
	ranks, _ := midranks(values(list))
	over, _ := exchanged(ranks, list, len(x))
	return over
}

// TestOthersMakeARunnerUnfit checks that a row that was measured while other processes used a PU is
// unmeasurable, whatever its samples are.
func TestOthersMakeARunnerUnfit(t *testing.T) {
	row := simulated(1, 60, 0.01, 1, steady)
	for share, want := range map[float64]Finding{0: Fine, 0.1: Fine, 0.3: Unmeasurable} {
		row.Others = share
		if v := judgeOne(row); v.Finding != want {
			t.Errorf("%v of a PU: %s, %s", share, v.Finding, v.Text)
		}
	}
}

// TestFewRoundsProveWhatTheyCan checks that an arm that is faster in each round is proven faster
// with as many rounds as RoundsFor returns, and not with one fewer.
func TestFewRoundsProveWhatTheyCan(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for _, rows := range []int{4, 20, 300} {
		for _, short := range []int{0, 1} {
			n := RoundsFor(rows) - short
			var list []Row
			for range rows {
				var r Row
				for range n {
					v := 1 + 0.1*rng.Float64()
					r.Baseline, r.Candidate = append(r.Baseline, v), append(r.Candidate, v*(1.2+0.1*rng.Float64()))
				}
				list = append(list, r)
			}
			for _, v := range Judge(list, Options{Ceiling: math.Inf(1), Interleaved: true}) {
				if proven := v.P < level; proven != (short == 0) {
					t.Fatalf("%d rows of %d rounds: p %v", rows, n, v.P)
				}
			}
		}
	}
}
