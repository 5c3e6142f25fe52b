package arms

import (
	"sandwich/internal/num"
	"sandwich/plans/evidence"
	"sandwich/runtime/phase"
)

// Evidence returns the samples of an arm in the tests of a phase, under the given name.
func (r *Race) Evidence(a *Arm, ph phase.Phase, name string) (out []evidence.Arm) {
	for k, x := range r.Tests {
		if x.Phase != ph {
			continue
		}
		arm := evidence.Arm{Name: name, Test: x.Name(), Unit: "tokens/s"}
		if part := r.Loader.Part(); part != "" {
			arm.Test += ", " + part
		}
		inOrder := true
		for i, lap := range a.Laps {
			arm.Samples = append(arm.Samples, num.Significant(float64(x.N)/lap.Seconds[k]))
			arm.Rounds = append(arm.Rounds, lap.Round)
			inOrder = inOrder && lap.Round == i
		}
		if inOrder {
			arm.Rounds = nil
		}
		out = append(out, arm)
	}
	return out
}

// Several ranks change the bits of the results. Therefore they may take at most a fraction of the
// time of one rank: worthRanks, or noisyRanks if the user accepts any gain.
const (
	worthRanks = 0.9
	noisyRanks = 0.98
)

// Worth returns the largest fraction of the time of one rank that several ranks may take. anyGain
// states that the user accepts several ranks for any gain.
func Worth(anyGain bool) float64 {
	if anyGain {
		return noisyRanks
	}
	return worthRanks
}
