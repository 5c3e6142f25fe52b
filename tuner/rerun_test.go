package tuner

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sandwich/plans"
	"sandwich/plans/evidence"
	"sandwich/plans/gate"
	"sandwich/tuner/race"
)

// TestJudgeRerun checks which arms beat the plan in rounds of different speed: those that are
// significantly faster, and those with several ranks only if the gain outweighs the change of bits.
// Rounds that only one of both ran do not count.
func TestJudgeRerun(t *testing.T) {
	tuning := &tuning{shape: plans.ModelShape{}}
	home := &partition{tuning: tuning, def: &plans.Plan{Ranks: make([]plans.Rank, 1)}}
	two := &partition{tuning: tuning, def: &plans.Plan{Ranks: make([]plans.Rank, 2)}}
	f := &raceArms{tuning: tuning, tests: []raceTest{{prefill, 512, 1, 0}, {prefill, 64, 1, 0}, {decode, 1, 1, 0}}}
	rng := rand.New(rand.NewPCG(1, 2))
	const rounds = 30
	level := make([]float64, rounds)
	for i := range level {
		level[i] = 1 + 0.3*rng.Float64()
	}
	// add adds an arm whose forwards take the given multiples of the plan's time.
	add := func(name string, on *partition, prompts, tokens float64) {
		a := &raceArm{Contender: race.Contender{Name: name}, on: on}
		for i := range rounds {
			seconds := func(v float64) float64 { return v * level[i] * (1 + 0.01*rng.NormFloat64()) }
			a.Laps = append(a.Laps, race.Lap{Round: i, Seconds: []float64{seconds(prompts), seconds(prompts / 10),
				seconds(tokens / 100)}})
		}
		f.arms = append(f.arms, a)
	}
	add("the plan", home, 1, 1)
	add("alike", home, 1, 1)
	add("faster tokens", home, 1.2, 0.95)
	add("ranks", two, 0.95, 0.8)
	same, other := &plans.Phase{PUs: plans.PUSet{0}}, &plans.Phase{PUs: plans.PUSet{1}}
	add("the plan's prompts", home, 0.9, 1)
	f.arms[0].phases = [2]*plans.Phase{same, same}
	f.arms[4].phases = [2]*plans.Phase{{PUs: plans.PUSet{0}}, other}
	f.arms[1].Laps = append(f.arms[1].Laps, race.Lap{Round: rounds, Seconds: []float64{1e-3, 1e-3,
		1e-3}}) // without the plan
	r := f.judgeRerun()
	want := map[string]map[string]gate.Finding{
		"alike":         {"prefill": "", "decode": ""},
		"faster tokens": {"prefill": gate.Improved, "decode": gate.Regressed},
		// 0.95 of the time does not outweigh the bits.
		"ranks": {"prefill": gate.Improved, "decode": gate.Regressed},
	}
	if r.Rounds != rounds || len(r.Rows) != 7 || len(r.Beaten()) != 2 {
		t.Fatalf("%d rounds, %d rows, %d beat the plan", r.Rounds, len(r.Rows), len(r.Beaten()))
	}
	if len(r.Same) != 1 || r.Same[0].Phase != "prefill" || r.Same[0].Finding != gate.Regressed {
		t.Errorf("an arm that runs prompts as the plan does: %+v", r.Same)
	}
	for _, v := range r.Rows {
		switch finding := want[v.Name][v.Phase]; finding {
		case "":
			if v.Finding == gate.Regressed || v.Finding == gate.Improved {
				t.Errorf("%s, %s: %s (%v, p %g)", v.Name, v.Phase, v.Finding, v.Ratio, v.P)
			}
		default:
			if v.Finding != finding {
				t.Errorf("%s, %s: %s, want %s (%v, p %g)", v.Name, v.Phase, v.Finding, finding, v.Ratio, v.P)
			}
		}
	}
}

// TestRerun checks that a tuned plan runs again with every arm of its race, for the requested
// number of rounds.
func TestRerun(t *testing.T) {
	o := tiny(t)
	var again *Rerun
	o.Rerun, o.Reran = LeastRerun, func(r *Rerun) { again = r }
	b, err := Tune(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if again == nil {
		t.Fatal("nothing ran again")
	}
	if again.Why != "" {
		t.Skip("this machine is too busy to race whole configurations in 3 s: " + again.Why)
	}
	arms := map[string]bool{}
	for _, a := range b.Evidence.Finalists {
		if len(a.Samples) > 0 {
			_, name, _ := strings.Cut(a.Name, ", ")
			arms[strings.TrimPrefix(name, evidence.WinnerMark)] = true
		}
	}
	seen := map[string]int{}
	for _, v := range slices.Concat(again.Rows, again.Same) {
		seen[v.Name]++
		if len(v.Baseline) != o.Rerun || len(v.Candidate) != o.Rerun || !(v.Baseline[0] > 0) {
			t.Errorf("%s, %s: %d and %d samples", v.Name, v.Phase, len(v.Baseline), len(v.Candidate))
		}
	}
	for name := range arms {
		if seen[name] != 2 {
			t.Errorf("%s ran again in %d phases", name, seen[name])
		}
	}
	if again.Rounds != o.Rerun || len(arms) == 0 || len(seen) != len(arms) {
		t.Errorf("%d rounds of %v with arms %v", again.Rounds, seen, arms)
	}
}

// TestEverySet checks that the sets of one rank are all but the empty one, and that each set of two
// ranks has a PU of both.
func TestEverySet(t *testing.T) {
	texts := func(ranks ...plans.Rank) (out []string) {
		for _, s := range setsOf(ranks) {
			out = append(out, s.String())
		}
		return out
	}
	if got := texts(plans.Rank{PUs: plans.PUSet{0, 1, 4}}); !slices.Equal(got,
		[]string{"0", "1", "0-1", "4", "0,4", "1,4", "0-1,4"}) {
		t.Error(got)
	}
	if got := texts(plans.Rank{PUs: plans.PUSet{0, 2}}, plans.Rank{PUs: plans.PUSet{1}}); !slices.Equal(got,
		[]string{"0-1", "1-2", "0-2"}) {
		t.Error(got)
	}
	if everySetFits(plans.PUSet{0, 1, 2, 3}) != nil || everySetFits(plans.PUSet{0, 1, 2, 3, 4}) == nil {
		t.Error("four PUs have fifteen sets, five have more than are raced")
	}
	tuning := &tuning{shape: plans.ModelShape{}}
	won := &partition{tuning: tuning, def: &plans.Plan{Ranks: []plans.Rank{{PUs: plans.PUSet{0, 1}}}}}
	tuning.home = won
	won.phases[prefill].winner.PUs, won.phases[decode].winner.PUs = plans.PUSet{0, 1}, plans.PUSet{0}
	f := &raceArms{tuning: tuning}
	for _, pus := range setsOf(won.def.Ranks) {
		f.addSet(won, pus)
	}
	if len(f.arms) != 3 || !slices.Equal(f.arms[1].phases[prefill].PUs, plans.PUSet{1}) {
		t.Errorf("%d arms", len(f.arms))
	}
	won.phases[decode].winner.PUs = plans.PUSet{0, 1}
	if f.addSet(won, plans.PUSet{0, 1}); len(f.arms) != 3 {
		t.Error("the plan races itself")
	}
}

// TestEvenSamples checks that short forwards are repeated until a sample takes a twelfth of the
// longest one.
func TestEvenSamples(t *testing.T) {
	f := &raceArms{tests: []raceTest{{prefill, 512, 1, 1.8}, {prefill, 64, 1, 0.25}, {decode, 1, 1, 0.03},
		{decode, 4, 1, 0.0001}}}
	f.even()
	for i, want := range []int{1, 1, 5, 200} {
		if f.tests[i].times != want {
			t.Errorf("%s is run %d times, want %d", f.tests[i].name(), f.tests[i].times, want)
		}
	}
	f.tests = []raceTest{{prefill, 512, 1, 0.02}, {decode, 1, 1, 0.005}}
	f.even()
	if f.tests[1].times != 4 {
		t.Errorf("%d forwards of 5 ms are no sample of 20 ms", f.tests[1].times)
	}
}
