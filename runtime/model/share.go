package model

import "sandwich/plans"

// Share returns the shard of one tensor-parallel rank (plans.ModelShape.Cut): the same ops over
// fewer heads, a narrower feed-forward and a part of the output rows (ArcLight appendix A.1). The
// shard refers to the same tensors; Weight.Row and Weight.Col are the offsets of its parts.
// Architectures need not know about ranks.
func (m *Model) Share(sh plans.Share) *Model {
	part := *m
	part.Dims.Heads, part.Dims.KVHeads = sh.Heads.Len(), sh.KVHeads.Len()
	if m.Experts.Count > 0 {
		part.Experts.FFN = sh.FFN.Len()
	} else {
		part.Dims.FFN = sh.FFN.Len()
	}
	part.Weights = make([]Weight, len(m.Weights))
	rows := make([]plans.Span, len(m.Weights))
	for i, w := range m.Weights {
		n, k, cut := sh.Matrix(w.Role, m.Dims.HeadDim, w.N, w.K) // of the product, not of the tensor
		rows[i] = n
		w.N, w.K, w.Row, w.Col, w.Cut = n.Len(), k.Len(), w.Row+n.Lo, k.Lo, cut
		part.Weights[i] = w
	}
	part.Ops = make([]Op, len(m.Ops))
	for i, op := range m.Ops {
		op.Bias = append([]*Vector(nil), op.Bias...)
		for j, b := range op.Bias {
			if part.Weights[op.W[j]].Col > 0 {
				op.Bias[j] = nil // the rank with column 0 adds the bias once
			} else if b != nil {
				op.Bias[j] = b.rows(rows[op.W[j]])
			}
		}
		if op.Kind == OpRotate || op.Kind == OpAttention {
			// Models whose layers differ in heads are not divided.
			op.Heads.Q, op.Heads.KV = sh.Heads.Len(), sh.KVHeads.Len()
		}
		if op.Sinks != nil {
			op.Sinks = op.Sinks.rows(sh.Heads)
		}
		part.Ops[i] = op
	}
	return &part
}
