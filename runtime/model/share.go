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
				op.Bias[j] = nil // the sum over the ranks has it once
			} else if b != nil {
				op.Bias[j] = b.rows(rows[op.W[j]])
			}
		}
		if op.Kind == OpRotate || op.Kind == OpAttention {
			op.Heads.Q, op.Heads.KV = sh.Heads.Len(), sh.KVHeads.Len() // layers of unlike heads are not cut
		}
		if op.Sinks != nil {
			op.Sinks = op.Sinks.rows(sh.Heads)
		}
		part.Ops[i] = op
	}
	return &part
}

// rows are some elements of a vector, of each expert where it has them.
func (v *Vector) rows(of plans.Span) *Vector {
	out := &Vector{Name: v.Name, N: of.Len(), Stack: v.Stack}
	if v.Data == nil { // a model of shapes alone has none
		return out
	}
	for i := range max(1, v.Stack) {
		out.Data = append(out.Data, v.Data[i*v.N:][of.Lo:of.Hi]...)
	}
	return out
}
