package model

import (
	"cmp"
	"math"
	"slices"

	"sandwich/microkernel/qtype"
	"sandwich/plans"
	"sandwich/runtime/gguf"
)

// spec describes one tensor of a configuration.
type spec struct {
	name     string
	role     string // q k v o gate up down router head embed; "" for vectors, which have float32
	parts    []part // products that use rows of it; usually one
	layer    int    // -1 outside the layers
	dims     []int  // ggml order: K, N, experts
	optional bool   // files may not have it
	expected bool   // an optional tensor that synthetic models have, and all layers or none
	mean     float32
	std      float32   // of random values
	fixed    []float32 // values instead of random ones; or nil
	// Destination of the file's tensor: one of the two.
	matrices []**gguf.Tensor
	vector   **Vector
}

// part is the number of rows of a tensor's matrices that a product uses.
type part struct {
	role string
	n    int
}

// rows returns the number of rows of the tensor, over all matrices.
func (s spec) rows() int {
	n := 1
	for _, d := range s.dims[1:] {
		n *= d
	}
	return n
}

// typeFor returns the type of the tensor in a file whose matrices have type t. Routers have
// float32, as in all converters. If a row is not a whole number of blocks, the tensor has a simpler
// type, as in llama-quantize.
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

// tensors returns the tensors of a synthetic file of the configuration, in file order.
func (c Config) tensors() []spec {
	m, err := c.Model()
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(m.tensors(), func(s spec) bool {
		return s.optional && s.fixed == nil && !s.expected
	})
}

// tensors returns the tensors that the ops of the model use, in file order: the embedding, then for
// each block its norm, its matrices and its small vectors. A head that is the embedding is not
// listed. The specs point at the fields that Load sets.
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
	return append(l.specs, l.deferred...)
}

// lister collects the specs of a model.
type lister struct {
	m        *Model
	init     initial
	specs    []spec
	deferred []spec // vectors of the block, to be listed after its last matrix
}

// op adds the tensors of an op.
func (l *lister) op(i int) {
	op := &l.m.Ops[i]
	for j, wi := range op.W {
		w := &l.m.Weights[wi]
		if w.Name != embedTensor {
			l.matrix(w)
		}
		l.deferVector(op.Layer, &w.Scale, 1, 0)
		l.deferVector(op.Layer, &op.Bias[j], 0, l.init.bias(w.Role))
	}
	if op.Kind == OpEmbed {
		for _, v := range []**Vector{&op.Types, &op.PosEmbed} {
			if *v != nil {
				l.vector(outside, v, 0, l.init.embed/4)
			}
		}
	}
	l.deferNorm(op.Layer, &op.QNorm, headNorm)
	l.deferNorm(op.Layer, &op.KNorm, headNorm)
	l.deferNorm(op.Layer, &op.Post, 1)
	l.deferNorm(op.Layer, &op.Gain, 1)
	if op.Kind == OpRoute {
		l.deferVector(op.Layer, &op.Router.Bias, 0, 0.3)
	}
	if t := op.Table; t != nil {
		l.specs = append(l.specs, spec{name: t.Name, role: plans.RoleEmbed, layer: outside,
			parts: []part{{plans.RoleEmbed, l.m.Dims.Vocab}}, dims: []int{t.N, l.m.Dims.Vocab}, std: l.init.embed,
			matrices: []**gguf.Tensor{&t.Tensor}})
	}
	l.deferVector(op.Layer, &op.Sinks, 0, 1)
	l.deferVector(op.Layer, &op.Gate, 0, float32(1/math.Sqrt(float64(l.m.Dims.Hidden))))
	l.state(op)
	if op.Kind == OpRowNorm || op.Kind == OpInputs || op.Kind == OpOutGate {
		l.deferNorm(op.Layer, &op.Norm, headNorm)
	} else if op.Norm != nil {
		mean := float32(1)
		if i+1 < len(l.m.Ops) && l.m.Ops[i+1].Kind == OpGather {
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
func (l *lister) matrix(w *Weight) {
	own := part{w.Role, w.N}
	if w.Row > 0 || w.RowRanges != nil {
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

// deferVector adds a vector, if there is one, after the block's matrices.
func (l *lister) deferVector(layer int, v **Vector, mean, std float32) {
	if *v != nil && (*v).Name != "" {
		l.deferred = append(l.deferred, vectorSpec(layer, v, mean, std))
	}
}

// deferNorm is deferVector for the weight of a norm.
func (l *lister) deferNorm(layer int, v **Vector, mean float32) {
	l.deferVector(layer, v, mean, spread*mean)
}

// vector adds a vector.
func (l *lister) vector(layer int, v **Vector, mean, std float32) {
	l.specs = append(l.specs, vectorSpec(layer, v, mean, std))
}

// vectorSpec returns the spec of a vector with random values of a mean and a standard deviation.
func vectorSpec(layer int, v **Vector, mean, std float32) spec {
	dims := []int{cmp.Or((*v).Of, (*v).N)}
	if (*v).Stack > 0 {
		dims = append(dims, (*v).Stack)
	}
	return spec{name: (*v).Name, layer: layer, dims: dims, optional: (*v).Optional, expected: (*v).Expected, mean: mean,
		std:   std,
		fixed: (*v).Data, vector: v}
}
