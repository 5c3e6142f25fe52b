package finals

import (
	"math/rand/v2"
	"slices"
	"testing"

	"sandwich/plans"
	"sandwich/plans/gate"
	"sandwich/runtime/phase"
	"sandwich/topotree"
	"sandwich/tuner/arms"
	"sandwich/tuner/partition"
	"sandwich/tuner/race"
	"sandwich/tuner/rig"
	"sandwich/tuner/run"
)

// TestJudgeRerun checks which arms beat the plan in rounds of different speed: those that are
// significantly faster, and those with several ranks only if the gain outweighs the change of bits.
// Rounds that only one of both ran do not count.
func TestJudgeRerun(t *testing.T) {
	home := &partition.Partition{Plan: &plans.Plan{Ranks: make([]plans.Rank, 1)}}
	two := &partition.Partition{Plan: &plans.Plan{Ranks: make([]plans.Rank, 2)}}
	f := &arms.Race{Home: home, Tests: []rig.Test{{Phase: phase.Prefill, N: 512}, {Phase: phase.Prefill, N: 64},
		{Phase: phase.Decode, N: 1}}}
	rng := rand.New(rand.NewPCG(1, 2))
	const rounds = 30
	level := make([]float64, rounds)
	for i := range level {
		level[i] = 1 + 0.3*rng.Float64()
	}
	// add adds an arm whose forwards take the given multiples of the plan's time.
	add := func(name string, on *partition.Partition, prompts, tokens float64) {
		a := &arms.Arm{Contender: race.Contender{Name: name}, On: on}
		for i := range rounds {
			seconds := func(v float64) float64 { return v * level[i] * (1 + 0.01*rng.NormFloat64()) }
			a.Laps = append(a.Laps, race.Lap{Round: i, Seconds: []float64{seconds(prompts), seconds(prompts / 10),
				seconds(tokens / 100)}})
		}
		f.Arms = append(f.Arms, a)
	}
	add("the plan", home, 1, 1)
	add("alike", home, 1, 1)
	add("faster tokens", home, 1.2, 0.95)
	add("ranks", two, 0.95, 0.8)
	same, other := &plans.Phase{PUs: topotree.NewCPUSet(0)}, &plans.Phase{PUs: topotree.NewCPUSet(1)}
	add("the plan's prompts", home, 0.9, 1)
	f.Arms[0].Phases = [phase.Count]*plans.Phase{same, same}
	f.Arms[4].Phases = [phase.Count]*plans.Phase{{PUs: topotree.NewCPUSet(0)}, other}
	f.Arms[1].Laps = append(f.Arms[1].Laps, race.Lap{Round: rounds, Seconds: []float64{1e-3, 1e-3,
		1e-3}}) // without the plan
	r := judgeRerun(f, false)
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

// TestEverySet checks that the sets of one rank are all but the empty one, and that each set of two
// ranks has a PU of both.
func TestEverySet(t *testing.T) {
	texts := func(ranks ...plans.Rank) (out []string) {
		for _, s := range setsOf(ranks) {
			out = append(out, s.String())
		}
		return out
	}
	if got := texts(plans.Rank{PUs: topotree.NewCPUSet(0, 1, 4)}); !slices.Equal(got,
		[]string{"0", "1", "0-1", "4", "0,4", "1,4", "0-1,4"}) {
		t.Error(got)
	}
	two := []plans.Rank{{PUs: topotree.NewCPUSet(0, 2)}, {PUs: topotree.NewCPUSet(1)}}
	if got := texts(two...); !slices.Equal(got, []string{"0-1", "1-2", "0-2"}) {
		t.Error(got)
	}
	if EverySetFits(topotree.NewCPUSet(0, 1, 2, 3)) != nil || EverySetFits(topotree.NewCPUSet(0, 1, 2, 3, 4)) == nil {
		t.Error("four PUs have fifteen sets, five have more than are raced")
	}
	won := Default(&partition.Partition{Plan: &plans.Plan{Ranks: []plans.Rank{{PUs: topotree.NewCPUSet(0, 1)}}}})
	prefill, decode := &won.Phases[phase.Prefill], &won.Phases[phase.Decode]
	prefill.Phase.PUs, decode.Phase.PUs = topotree.NewCPUSet(0, 1), topotree.NewCPUSet(0)
	f := &arms.Race{Home: won.Partition}
	for _, pus := range setsOf(won.Partition.Plan.Ranks) {
		addSet(f, won, pus)
	}
	if len(f.Arms) != 3 || !f.Arms[1].Phases[phase.Prefill].PUs.Equal(topotree.NewCPUSet(1)) {
		t.Errorf("%d arms", len(f.Arms))
	}
	won.Partition.Plan.Ranks[0].PUs = topotree.CPURange(0, maxSetPUs)
	f.Run = run.New(run.Options{})
	if addSets(f, won); len(f.Arms) != 3 || len(f.Run.Rejected) != 1 {
		t.Errorf("a winner with more PUs than the default plan: %d arms, %+v", len(f.Arms), f.Run.Rejected)
	}
	decode.Phase.PUs = topotree.NewCPUSet(0, 1)
	if addSet(f, won, topotree.NewCPUSet(0, 1)); len(f.Arms) != 3 {
		t.Error("the plan races itself")
	}
}
