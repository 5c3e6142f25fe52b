package tensors

import (
	"cmp"
	"math"
	"slices"

	"sandwich/plans"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
)

// state lists the vectors of a recurrent op.
func (l *lister) state(op *model.Op) {
	if c := op.Conv; c != nil {
		l.deferVector(op.Layer, &c.Weight, 0, convStd(c.Width))
	}
	if d := op.Delta; d != nil && op.Kind == model.OpDelta {
		l.deferVector(op.Layer, &d.A, decayA, -decayA/4)
		l.deferVector(op.Layer, &d.Shift, decayShift, 0.3)
	}
}

// List returns the tensors that the ops of the model use, in file order: the embedding, then for
// each block its norm, its matrices and its small vectors. A head that is the embedding is not
// listed. The specs point at the fields that Load sets.
func List(m *model.Model) []Spec {
	l := &lister{m: m, init: newInit(m)}
	l.specs = append(l.specs, Spec{Name: model.EmbedTensor, Role: "embed", Layer: model.Outside,
		Parts: []Part{{"embed", m.Dims.Vocab}},
		Dims:  []int{m.Dims.Hidden, m.Dims.Vocab}, Std: l.init.embed, Matrices: []**gguf.Tensor{&m.Embed}})
	for _, r := range m.Ropes() {
		for _, v := range r.Vectors() {
			if *v != nil {
				l.vector(model.Outside, v, 0, 0)
			}
		}
	}
	for i := range m.Ops {
		l.op(i)
	}
	return append(l.specs, l.deferred...)
}

// lister collects the specs of a model.
type lister struct {
	m        *model.Model
	init     initial
	specs    []Spec
	deferred []Spec // vectors of the block, to be listed after its last matrix
}

// op adds the tensors of an op.
func (l *lister) op(i int) {
	op := &l.m.Ops[i]
	for j, wi := range op.W {
		w := &l.m.Weights[wi]
		if w.Name != model.EmbedTensor {
			l.matrix(w)
		}
		l.deferVector(op.Layer, &w.Scale, 1, 0)
		l.deferVector(op.Layer, &op.Bias[j], 0, l.init.bias(w.Role))
	}
	if op.Kind == model.OpEmbed {
		for _, v := range []**model.Vector{&op.Types, &op.PosEmbed} {
			if *v != nil {
				l.vector(model.Outside, v, 0, l.init.embed/4)
			}
		}
	}
	l.deferNorm(op.Layer, &op.QNorm, headNorm)
	l.deferNorm(op.Layer, &op.KNorm, headNorm)
	l.deferNorm(op.Layer, &op.Post, 1)
	l.deferNorm(op.Layer, &op.Gain, 1)
	if op.Kind == model.OpRoute {
		l.deferVector(op.Layer, &op.Router.Bias, 0, 0.3)
	}
	if t := op.Table; t != nil {
		l.specs = append(l.specs, Spec{Name: t.Name, Role: plans.RoleEmbed, Layer: model.Outside,
			Parts: []Part{{plans.RoleEmbed, l.m.Dims.Vocab}}, Dims: []int{t.N, l.m.Dims.Vocab}, Std: l.init.embed,
			Matrices: []**gguf.Tensor{&t.Tensor}})
	}
	l.deferVector(op.Layer, &op.Sinks, 0, 1)
	l.deferVector(op.Layer, &op.Gate, 0, float32(1/math.Sqrt(float64(l.m.Dims.Hidden))))
	l.state(op)
	if op.Kind == model.OpRowNorm || op.Kind == model.OpInputs || op.Kind == model.OpOutGate {
		l.deferNorm(op.Layer, &op.Norm, headNorm)
	} else if op.Norm != nil {
		mean := float32(1)
		if i+1 < len(l.m.Ops) && l.m.Ops[i+1].Kind == model.OpGather {
			mean = l.init.outNorm
		}
		l.specs = append(l.specs, l.deferred...)
		l.deferred = nil
		l.vector(op.Layer, &op.Norm, mean, spread*mean)
		if op.Shift != nil {
			l.vector(op.Layer, &op.Shift, 0, spread)
		}
	}
}

// matrix adds the tensor of a weight, or adds the weight to the tensor that it shares with others.
func (l *lister) matrix(w *model.Weight) {
	own := Part{w.Role, w.N}
	if w.Row > 0 || w.RowRanges != nil {
		if at := slices.IndexFunc(l.specs, func(s Spec) bool { return s.Name == w.Name }); at >= 0 {
			s := &l.specs[at]
			s.Parts, s.Matrices = append(s.Parts, own), append(s.Matrices, &w.Tensor)
			return
		}
	}
	dims := []int{w.K, w.Rows}
	if w.Stack > 0 {
		dims = append(dims, w.Stack)
	}
	l.specs = append(l.specs, Spec{Name: w.Name, Role: w.Role, Parts: []Part{own}, Layer: w.Layer, Dims: dims,
		Std: l.init.matrix(w), Matrices: []**gguf.Tensor{&w.Tensor}})
}

// deferVector adds a vector, if there is one, after the block's matrices.
func (l *lister) deferVector(layer int, v **model.Vector, mean, std float32) {
	if *v != nil && (*v).Name != "" {
		l.deferred = append(l.deferred, vectorSpec(layer, v, mean, std))
	}
}

// deferNorm is deferVector for the weight of a norm.
func (l *lister) deferNorm(layer int, v **model.Vector, mean float32) {
	l.deferVector(layer, v, mean, spread*mean)
}

// vector adds a vector.
func (l *lister) vector(layer int, v **model.Vector, mean, std float32) {
	l.specs = append(l.specs, vectorSpec(layer, v, mean, std))
}

// vectorSpec returns the spec of a vector with random values of a mean and a standard deviation.
func vectorSpec(layer int, v **model.Vector, mean, std float32) Spec {
	dims := []int{cmp.Or((*v).Of, (*v).N)}
	if (*v).Stack > 0 {
		dims = append(dims, (*v).Stack)
	}
	return Spec{Name: (*v).Name, Layer: layer, Dims: dims, Optional: (*v).Optional, Expected: (*v).Expected, Mean: mean,
		Std:   std,
		Fixed: (*v).Data, Vector: v}
}
