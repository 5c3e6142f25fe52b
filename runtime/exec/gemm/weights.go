package gemm

import (
	"unsafe"

	"sandwich/microkernel"
)

// Packed is a weight matrix in the layout that its kernels read, and its compute path.
type Packed struct {
	Layout  microkernel.Layout
	Compute microkernel.Compute
	Data    unsafe.Pointer
}

// quantizes reports whether products read activations in a form of the compute path.
func (p *Packed) quantizes() bool { return p.Compute != microkernel.ComputeF32 }

// Weights are the packed weights of a rank.
type Weights struct {
	Packed []Packed // the matrices of a stack follow each other
	First  []int    // by weight of the model: index of its first matrix in Packed; -1: the rank holds none
}

// At returns weight i of the model, or the first matrix of its stack.
func (w *Weights) At(i int) *Packed { return &w.Packed[w.First[i]] }

// InStack returns matrix j of the stack of weight i.
func (w *Weights) InStack(i, j int) *Packed { return &w.Packed[w.First[i]+j] }
