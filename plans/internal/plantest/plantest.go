package plantest

import (
	"testing"

	"sandwich/plans"
	"sandwich/plans/evidence"
	"sandwich/plans/internal/hosttest"
	"sandwich/profiles"
	"sandwich/topotree"
)

// Parts returns the parts of a small bundle with a value in every field.
func Parts(t testing.TB) (plans.Plan, profiles.Profile, evidence.Evidence) {
	t.Helper()
	h := hosttest.Cores(t, 4, "avx2", "avx512", "avx512_vnni")
	h.Ceilings = []profiles.Ceiling{{Kind: profiles.Compute, ISA: "avx512", Type: "f32", PUs: 1,
		Figure: profiles.NewFigure("FLOP/s", []float64{1.8e11, 1.9e11})}}
	p := Default(t, h, Llama160M("q8_0"), "")
	p.Name, p.Tuned = "tuned on a test", true
	p.Decode.PUs = topotree.NewCPUSet(0, 2)
	p.Decode.Tables[0].Rules[0].Schedule.WaysM, p.Decode.Tables[0].Rules[0].Schedule.WaysN = 1, 2
	return *p, *h, evidence.Evidence{
		Version: plans.Version, Build: "abc", Created: "2026-01-31T12:00:00Z", Strategy: "sandwich", Effort: "quick",
		Seed: 1, Budget: 60, Spent: 59.5, Noise: 0.01, Trials: 10,
		EarlyStop: "after three M that one schedule wins",
		Searches: []evidence.Search{{Phase: "decode", PUs: "0-1", Weight: plans.WeightKey{N: 768, K: 768, Type: "q8_0"},
			Lengths: 9, Trials: 10,
			Noise: 0.01, Reopened: []int{8}, Reused: 16, Cut: 1},
			{Phase: "prefill", PUs: "0-1", Weight: plans.WeightKey{N: 768, K: 768, Type: "q8_0"}}},
		Kernels: []evidence.Trial{{Phase: "decode", Weight: plans.WeightKey{N: 768, K: 768, Type: "q8_0"}, M: 1,
			Schedule: "x", Tried: 3,
			Seconds: profiles.NewFigure("s", []float64{1e-5, 2e-5})}},
		Finalists: []evidence.Arm{{Name: "winner", Test: "pp512", Unit: "tokens/s", Samples: []float64{100.5, 101}}},
		Rejected:  []evidence.Rejected{{Candidate: "all PUs in decode", Reason: "slower by 3 %"}},
	}
}
