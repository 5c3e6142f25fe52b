package evidence_test

import (
	"slices"
	"testing"

	"sandwich/plans/bundle"
	"sandwich/plans/evidence"
	"sandwich/plans/internal/bundletest"
	"sandwich/plans/internal/plantest"
	"sandwich/topotree"
)

// TestPlaces checks that the winner comes first, and that an arm that cannot be distinguished from
// it counts as noise, whichever of the two is faster.
func TestPlaces(t *testing.T) {
	samples := map[string][]float64{
		evidence.ArmDefault:  {100, 90, 110, 100, 95, 100, 100, 80},
		evidence.ArmAgain:    {101, 91, 108, 100, 96, 99, 100, 81},
		evidence.ArmUnpinned: {50, 50, 50, 50, 50, 50, 50, 50},
		"tuned on PUs 0-1":   {112, 101, 122, 113, 107, 112, 112, 90},
		"tuned on PUs 0":     {112.5, 101, 122, 114, 107, 112, 113, 90},
	}
	names := append(slices.Clone(plantest.RaceNames), "tuned on PUs 0")
	e := plantest.Race("prefill", "tuned on PUs 0-1", names, samples)
	places, noise := e.Places("prefill")
	if len(places) != 5 || places[0].Arm != "tuned on PUs 0-1" || places[4].Arm != evidence.ArmUnpinned ||
		noise > 0.02 {
		t.Fatalf("%+v, noise %v", places, noise)
	}
	runner := evidence.RunnerUp(places)
	if runner.Arm != "tuned on PUs 0" || !runner.Noise || runner.Behind.Median > 0 {
		t.Errorf("runner-up %+v", runner)
	}
	for _, p := range places {
		if noisy := p.Arm == "tuned on PUs 0"; p.Noise != noisy {
			t.Errorf("%s: noise %v, behind %+v", p.Arm, p.Noise, p.Behind)
		}
	}
	e = plantest.Race("decode", evidence.ArmDefault, plantest.RaceNames[:2], samples)
	places, _ = e.Places("decode")
	if len(places) != 2 || !places[1].Noise || evidence.RunnerUp(places) != nil {
		t.Errorf("%+v", places)
	}
	if places, _ = e.Places("prefill"); places != nil {
		t.Errorf("no race, and %+v", places)
	}
}

func TestSearchTraceIsChecked(t *testing.T) {
	b := bundletest.New(t)
	b.Evidence.Trace = &evidence.Trace{Trees: 3, Sections: 2, Configurations: 4, DistinctCosts: 3,
		Simulated: 3, Load: "some",
		Objective: "latency", Assumed: []string{"nothing is known"}}
	b.Evidence.Trace.Keep(evidence.TraceCandidate{Name: "all PUs", TP: 1, PrefillPUs: topotree.NewCPUSet(0, 1),
		DecodePUs:   topotree.NewCPUSet(0),
		PrefillRate: 10, DecodeRate: 2, Latency: 0.5, Bytes: 1 << 30})
	dir := t.TempDir() + "/x.plan"
	if err := b.Write(dir); err != nil {
		t.Fatal(err)
	}
	again, err := bundle.Read(dir)
	if err != nil || again.Evidence.Trace == nil || again.Evidence.Trace.Candidates[0].DecodePUs.String() != "0" {
		t.Fatalf("%+v, %v", again, err)
	}
	b.Evidence.Trace.Candidates[0].Latency = -1
	if b.Write(dir) == nil {
		t.Error("a negative latency was written")
	}
	b.Evidence.Trace.Candidates[0].Latency, b.Evidence.Trace.Trees = 1, -1
	if b.Write(dir) == nil {
		t.Error("a negative number of trees was written")
	}
}

// Candidates that were raced against the default one at a time share no rounds and are not
// compared.
func TestPlacesNeverInOneRound(t *testing.T) {
	same := []float64{100, 101, 99, 100, 100, 101, 99, 100}
	e := plantest.Race("prefill", "tuned on PUs 0-1", append(slices.Clone(plantest.RaceNames), "two ranks"),
		map[string][]float64{
			evidence.ArmDefault: same, evidence.ArmAgain: same, evidence.ArmUnpinned: same,
			"tuned on PUs 0-1": {103, 104, 102, 103}, "two ranks": {108, 109, 107, 108}})
	for i := range e.Finalists {
		switch a := &e.Finalists[i]; a.Name {
		case "prefill, " + evidence.WinnerMark + "tuned on PUs 0-1":
			a.Rounds = []int{0, 1, 2, 3}
		case "prefill, two ranks":
			a.Rounds = []int{4, 5, 6, 7}
		}
	}
	places, _ := e.Places("prefill")
	runner := evidence.RunnerUp(places)
	if runner == nil || runner.Arm != "two ranks" || runner.Compared() || runner.Noise || runner.Over.Rounds != 4 {
		t.Errorf("%+v", runner)
	}
	if last := places[len(places)-1]; !last.Compared() {
		t.Errorf("%+v", last)
	}
}
