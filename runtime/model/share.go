package model

import "sandwich/plans"

// Share returns what one tensor-parallel rank holds of the model (plans.ModelShape.Cut): the same
// ops over fewer heads, a narrower feed-forward and a part of the head's rows. It shares the
// tensors; Weight.Row and Weight.Col say where its pieces begin in them. What is not cut is as it
// was. The definitions of models know nothing of ranks: this is where the bundle of one operand per
// rank comes from (ArcLight appendix A.1).
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
		n, k, cut := sh.Matrix(w.Role, m.Dims.HeadDim, w.N, w.K)
		rows[i] = n
		w.N, w.K, w.Row, w.Col, w.Cut = n.Len(), k.Len(), n.Lo, k.Lo, cut
		part.Weights[i] = w
	}
	part.Ops = make([]Op, len(m.Ops))
	for i, op := range m.Ops {
		op.Bias = append([]*Vector(nil), op.Bias...)
		for j, b := range op.Bias {
			if b != nil {
				n := rows[op.W[j]]
				op.Bias[j] = &Vector{Name: b.Name, N: n.Len()}
				if b.Data != nil { // a model of shapes alone has none
					op.Bias[j].Data = b.Data[n.Lo:n.Hi]
				}
			}
		}
		part.Ops[i] = op
	}
	return &part
}
