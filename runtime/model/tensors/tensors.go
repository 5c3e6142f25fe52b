// Package tensors lists the tensors of a model: names, shapes, the fields of the model that they
// fill, and the distribution of random values.
package tensors

import (
	"slices"

	"sandwich/microkernel/qtype"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
)

// SameDims compares two shapes without trailing dimensions of 1.
func SameDims(a, b []int) bool {
	for len(a) > 1 && a[len(a)-1] == 1 {
		a = a[:len(a)-1]
	}
	for len(b) > 1 && b[len(b)-1] == 1 {
		b = b[:len(b)-1]
	}
	return slices.Equal(a, b)
}

// Spec describes one tensor of a configuration.
type Spec struct {
	Name     string
	Role     string // q k v o gate up down router head embed; "" for vectors, which have float32
	Parts    []Part // products that use rows of it; usually one
	Layer    int    // -1 outside the layers
	Dims     []int  // ggml order: K, N, experts
	Optional bool   // files may not have it
	Expected bool   // an optional tensor that synthetic models have, and all layers or none
	Mean     float32
	Std      float32   // of random values
	Fixed    []float32 // values instead of random ones; or nil
	// Destination of the file's tensor: one of the two.
	Matrices []**gguf.Tensor
	Vector   **model.Vector
}

// Part is the number of rows of a tensor's matrices that a product uses.
type Part struct {
	Role string
	N    int
}

// Rows returns the number of rows of the tensor, over all matrices.
func (s Spec) Rows() int {
	n := 1
	for _, d := range s.Dims[1:] {
		n *= d
	}
	return n
}

// TypeFor returns the type of the tensor in a file whose matrices have type t. Routers have
// float32, as in all converters. If a row is not a whole number of blocks, the tensor has a simpler
// type, as in llama-quantize.
func (s Spec) TypeFor(t gguf.Type) gguf.Type {
	if s.Role == "" || s.Role == "router" {
		return gguf.F32
	}
	fits := func(t gguf.Type) bool { elems, _ := t.Block(); return elems > 0 && s.Dims[0]%elems == 0 }
	if d := t.Desc(); !fits(t) && d.Fallback != qtype.F32 {
		t = gguf.Type(d.Fallback)
	}
	if !fits(t) {
		t = gguf.F16
	}
	return t
}
