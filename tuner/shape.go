package tuner

import (
	"sandwich/plans"
	"sandwich/tuner/measure"
)

// modelBytes returns the size of a model's packed weights in bytes. Types without kernels count as
// 0, embeddings only as heads.
func modelBytes(s plans.ModelShape) (total int64) {
	for _, w := range s.Weights {
		if w.Role != plans.RoleEmbed {
			total += int64(w.Count) * int64(measure.PackedBytes(w.Key()))
		}
	}
	return total
}

// phaseOf returns one of the two phases of a plan.
func phaseOf(p *plans.Plan, phase int) *plans.Phase {
	if phase == prefill {
		return &p.Prefill
	}
	return &p.Decode
}
