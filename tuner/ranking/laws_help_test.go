package ranking

import (
	"testing"

	"sandwich/plans"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/topotree"
	"sandwich/tuner/candidates"
)

// predictorOf returns a predictor of a model on a profile.
func predictorOf(t testing.TB, p *profiles.Profile, shape plans.ModelShape) *candidates.Predictor {
	t.Helper()
	plan, err := heuristic.Default(p, shape, heuristic.Options{})
	if err != nil {
		t.Fatal(err)
	}
	whole, _ := candidates.Complete(p, plan.Widest(), plan.Arithmetics())
	out, err := candidates.NewPredictor(whole, plan, nil, candidates.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// simulatedConfig returns the decode rate of one rank per node on some PUs.
func simulatedConfig(t testing.TB, p *profiles.Profile, shape plans.ModelShape, pus topotree.CPUSet) float64 {
	t.Helper()
	c := &candidates.Config{Prefill: pus, Decode: pus}
	for _, n := range p.Machine.Memory {
		c.Ranks = append(c.Ranks, candidates.Rank{PUs: pus.Intersect(n.CPUs), Nodes: []int{n.ID}})
	}
	cost, err := predictorOf(t, p, shape).Cost(c)
	if err != nil {
		t.Fatal(err)
	}
	return 1 / cost.DecodeSeconds(1, 128)
}
