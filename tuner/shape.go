package tuner

import (
	"sandwich/microkernel"
	"sandwich/plans"
)

// modelBytes is the size of a model's weights as they are packed; types without kernels count as
// nothing, embeddings only as heads.
func modelBytes(s plans.ModelShape) (total int64) {
	for _, w := range s.Weights {
		if w.Role != plans.RoleEmbed {
			total += int64(w.Count) * int64(packedBytes(w.Key()))
		}
	}
	return total
}

func packedBytes(k plans.WeightKey) int {
	t, err := microkernel.ParseWeightType(k.Type)
	if err != nil {
		return 0
	}
	return microkernel.Layout{Type: t, N: k.N, K: k.K}.Bytes()
}

// phaseOf is one of the two phases of a plan.
func phaseOf(p *plans.Plan, phase int) *plans.Phase {
	if phase == prefill {
		return &p.Prefill
	}
	return &p.Decode
}
