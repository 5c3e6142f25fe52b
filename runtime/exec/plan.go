package exec

import (
	"cmp"
	"errors"
	"reflect"
	"slices"
	"sync"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/exec/gemm"
)

// SharesWeights reports whether two plans of a model divide, pack and compute its weights alike, so
// that one copy serves both, with any instruction sets (DESIGN rule 5).
func SharesWeights(a, b *plans.Plan) bool {
	sameRanks := a.TP() == 1 && b.TP() == 1 && a.Ranks[0].NUMANode == b.Ranks[0].NUMANode ||
		reflect.DeepEqual(a.Ranks, b.Ranks)
	return sameRanks && slices.Equal(a.Weights, b.Weights)
}

// BuildPlan builds the code that forwards under a plan run, which loading the plan does step by
// step: products, vector kernels and attention. Attention with a window or a soft cap is not among
// it: a plan does not say whether its model has them.
func BuildPlan(plan *plans.Plan) error {
	isas := []microkernel.ISA{plan.ISAOf("")}
	for _, c := range plan.Classes {
		isas = append(isas, c.ISA)
	}
	attention := make([]error, len(isas))
	layout := microkernel.KVLayout{HeadDim: plan.Model.HeadDim, Elem: plan.KV}.For(plan.Attention)
	var group sync.WaitGroup // while the products are built
	for i, isa := range isas {
		group.Go(func() {
			_, attention[i] = microkernel.NewAttention(isa, layout, microkernel.AttentionForm{Dot: plan.Attention})
		})
	}
	err := gemm.Build(plan)
	group.Wait()
	return cmp.Or(err, errors.Join(attention...))
}
