package model

import (
	"cmp"
	"math"
	"slices"

	"sandwich/microkernel/qtype"
	"sandwich/plans"
	"sandwich/runtime/gguf"
)

// spec is one tensor that a configuration asks for.
type spec struct {
	name     string
	role     string // q k v o gate up down router head embed; "" for vectors, which stay float32
	parts    []part // the products that read rows of it; one as a rule
	layer    int    // -1 outside the layers
	dims     []int  // ggml order: K, N, experts
	optional bool   // files may lack it
	usual    bool   // Synth writes it all the same; and all layers have it, or none
	mean     float32
	std      float32 // of random values
	fixed    []float32
	// What a file's tensor is bound to: one of both.
	matrices []**gguf.Tensor
	vector   **Vector
}

// part is a product's share of the rows of each of a tensor's matrices.
type part struct {
	role string
	n    int
}

// rows is the number of rows of the tensor's first dimension.
func (s spec) rows() int {
	n := 1
	for _, d := range s.dims[1:] {
		n *= d
	}
	return n
}

// typeFor is the type of the tensor in a file whose matrices are of type t. Routers stay float32,
// as in every converter; a row that is no whole number of blocks takes the next simpler type, as
// llama-quantize does.
func (s spec) typeFor(t gguf.Type) gguf.Type {
	if s.role == "" || s.role == "router" {
		return gguf.F32
	}
	fits := func(t gguf.Type) bool { elems, _ := t.Block(); return elems > 0 && s.dims[0]%elems == 0 }
	if d := t.Desc(); !fits(t) && d.Fallback != qtype.F32 {
		t = gguf.Type(d.Fallback)
	}
	if !fits(t) {
		t = gguf.F16
	}
	return t
}

// tensors lists the tensors of a file of the configuration, in their order there.
func (c Config) tensors() []spec {
	m, err := c.Model()
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(m.tensors(), func(s spec) bool {
		return s.optional && s.fixed == nil && !s.usual
	})
}

// tensors lists what the ops of the model ask for in the order of a file: the embedding, then block
// by block its norm, its matrices and its small vectors. A head that is the embedding is no tensor
// of its own. The specs point at where Load puts what the file has.
func (m *Model) tensors() []spec {
	l := &lister{m: m, init: newInit(m)}
	l.specs = append(l.specs, spec{name: embedTensor, role: "embed", layer: outside,
		parts: []part{{"embed", m.Dims.Vocab}},
		dims:  []int{m.Dims.Hidden, m.Dims.Vocab}, std: l.init.embed, matrices: []**gguf.Tensor{&m.Embed}})
	for _, r := range m.Ropes() {
		for _, v := range r.vectors() {
			if *v != nil {
				l.vector(outside, v, 0, 0)
			}
		}
	}
	for i := range m.Ops {
		l.op(i)
	}
	return append(l.specs, l.small...)
}

// lister collects specs.
type lister struct {
	m     *Model
	init  initial
	specs []spec
	small []spec // vectors that wait for the block's last matrix
}

func (l *lister) op(i int) {
	op := &l.m.Ops[i]
	for j, wi := range op.W {
		w := &l.m.Weights[wi]
		if w.Name != embedTensor {
			l.matrix(w)
		}
		l.later(op.Layer, &w.Scale, 1, 0)
		l.later(op.Layer, &op.Bias[j], 0, l.init.bias(w.Role))
	}
	if op.Kind == OpEmbed {
		for _, v := range []**Vector{&op.Types, &op.Places} {
			if *v != nil {
				l.vector(outside, v, 0, l.init.embed/4)
			}
		}
	}
	l.laterNorm(op.Layer, &op.QNorm, headNorm)
	l.laterNorm(op.Layer, &op.KNorm, headNorm)
	l.laterNorm(op.Layer, &op.Post, 1)
	l.laterNorm(op.Layer, &op.Gain, 1)
	if op.Kind == OpRoute {
		l.later(op.Layer, &op.Router.Bias, 0, 0.3)
	}
	if t := op.Table; t != nil {
		l.specs = append(l.specs, spec{name: t.Name, role: plans.RoleEmbed, layer: outside,
			parts: []part{{plans.RoleEmbed, l.m.Dims.Vocab}}, dims: []int{t.N, l.m.Dims.Vocab}, std: l.init.embed,
			matrices: []**gguf.Tensor{&t.Tensor}})
	}
	l.later(op.Layer, &op.Sinks, 0, 1)
	l.later(op.Layer, &op.Gate, 0, float32(1/math.Sqrt(float64(l.m.Dims.Hidden))))
	l.state(op)
	if op.Kind == OpRowNorm || op.Kind == OpInputs || op.Kind == OpOutGate {
		l.laterNorm(op.Layer, &op.Norm, headNorm)
	} else if op.Norm != nil {
		mean := float32(1)
		if i+1 < len(l.m.Ops) && l.m.Ops[i+1].Kind == OpGather {
			mean = l.init.outNorm
		}
		l.specs = append(l.specs, l.small...)
		l.small = nil
		l.vector(op.Layer, &op.Norm, mean, spread*mean)
		if op.Shift != nil {
			l.vector(op.Layer, &op.Shift, 0, spread)
		}
	}
}

// matrix adds the tensor of a weight, or the weight to the tensor that it is a part of.
func (l *lister) matrix(w *Weight) {
	own := part{w.Role, w.N}
	if w.Row > 0 || w.Picks != nil {
		if at := slices.IndexFunc(l.specs, func(s spec) bool { return s.name == w.Name }); at >= 0 {
			s := &l.specs[at]
			s.parts, s.matrices = append(s.parts, own), append(s.matrices, &w.Tensor)
			return
		}
	}
	dims := []int{w.K, w.Rows}
	if w.Stack > 0 {
		dims = append(dims, w.Stack)
	}
	l.specs = append(l.specs, spec{name: w.Name, role: w.Role, parts: []part{own}, layer: w.Layer, dims: dims,
		std: l.init.matrix(w), matrices: []**gguf.Tensor{&w.Tensor}})
}

// later adds a vector, if there is one, behind the block's matrices.
func (l *lister) later(layer int, v **Vector, mean, std float32) {
	if *v != nil && (*v).Name != "" {
		l.small = append(l.small, vectorSpec(layer, v, mean, std))
	}
}

func (l *lister) laterNorm(layer int, v **Vector, mean float32) { l.later(layer, v, mean, spread*mean) }

func (l *lister) vector(layer int, v **Vector, mean, std float32) {
	l.specs = append(l.specs, vectorSpec(layer, v, mean, std))
}

func vectorSpec(layer int, v **Vector, mean, std float32) spec {
	dims := []int{cmp.Or((*v).Of, (*v).N)}
	if (*v).Stack > 0 {
		dims = append(dims, (*v).Stack)
	}
	return spec{name: (*v).Name, layer: layer, dims: dims, optional: (*v).Optional, usual: (*v).Usual, mean: mean,
		std:   std,
		fixed: (*v).Data, vector: v}
}
