package exec

import (
	"fmt"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/gguf"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/mem"
	"sandwich/runtime/model"
)

// Forecast is the memory that one rank will hold, in bytes, and on which NUMA node; mem.AnyNode
// where it is bound to none.
type Forecast struct {
	Rank, Node  int
	Weights     int64
	KV          int64
	Activations int64 // of one set of Buffers
}

// Total is all of it with a number of sets of activations.
func (f Forecast) Total(sets int) int64 { return f.Weights + f.KV + int64(sets)*f.Activations }

// Foresee says what Open will hold under a plan, from the plan alone: `plan verify` and `serve
// --dry-run` print it before anything is read. Blocks and logitRows are those of Options.
func Foresee(plan *plans.Plan, blocks, logitRows int) ([]Forecast, error) {
	m, err := model.Outline(plan.Model)
	if err != nil {
		return nil, err
	}
	shares, err := plan.Shares()
	if err != nil {
		return nil, err
	}
	var k RoundedK
	for _, w := range plan.Weights {
		k.count(w.Compute, w.K)
	}
	out := make([]Forecast, len(shares))
	for r, sh := range shares {
		f := &out[r]
		f.Rank, f.Node = r, mem.AnyNode
		if n := plan.Ranks[r].NUMANode; n >= 0 {
			f.Node = n
		}
		for _, w := range plan.Model.Weights {
			bytes, err := heldBytes(plan, sh, r, w)
			if err != nil {
				return nil, err
			}
			f.Weights += bytes
		}
		own := m
		if len(shares) > 1 {
			own = m.Share(sh)
		}
		p := shard{model: own, first: r == 0}
		l := microkernel.KVLayout{HeadDim: own.Dims.HeadDim, Elem: plan.KV}
		f.KV = int64(own.Dims.Layers*own.Dims.KVHeads*(l.KBytes()+l.VBytes())/microkernel.KVBlock) *
			kvcache.BlockTokens * int64(blocks)
		f.Activations = int64(p.layOut(max(plan.Chunk, logitRows), logitRows, k).total)
	}
	return out, nil
}

// heldBytes is what a rank holds of the matrices of a role: its pieces, and of what is not cut all
// or nothing.
func heldBytes(plan *plans.Plan, sh plans.Share, rank int, w plans.WeightShape) (int64, error) {
	if w.Role == plans.RoleEmbed {
		if plan.Model.Tied || rank > 0 {
			return 0, nil
		}
		t, err := gguf.ParseType(w.Type)
		if err != nil {
			return 0, err
		}
		return int64(t.RowBytes(w.K)) * int64(w.N) * int64(w.Count), nil
	}
	key := w.Key()
	if plan.TP() > 1 {
		rows, cols, cut := sh.Matrix(w.Role, plan.Model.HeadDim, w.N, w.K)
		if !cut && rank > 0 {
			return 0, nil
		}
		key.N, key.K = rows.Len(), cols.Len()
	}
	t, err := microkernel.ParseWeightType(key.Type)
	if err != nil {
		return 0, fmt.Errorf("weight %s: %w", key, err)
	}
	return int64(microkernel.Layout{Type: t, N: key.N, K: key.K}.Bytes()) * int64(w.Count), nil
}
