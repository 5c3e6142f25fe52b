// Package vector emits the row operations of amd64 for AVX2 and AVX-512: norms, rotations, gated
// units, softmax, quantization, KV stores, convolutions, the delta rule, and the transposes of
// packing. The plain-Go definition of each operation is in package vec, next to its caller.
//
// An emitter documents its arguments as "P" (pointers), "N" (lengths and strides, in elements
// unless stated otherwise) and "F" (floats), the fields of kernel.VectorArgs.
//
// The package must not import amd64/gemm or amd64/attention.
package vector

import (
	"unsafe"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/amd64/lanes"
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/kernel"
)

// gen generates one row operation.
type gen struct{ *lanes.Gen }

func newGen(level asm.Level) gen { return gen{lanes.New(level)} }

// positions is the number of positions in a block of the KV cache.
const positions = arith.BlockPositions

// Offsets of the arguments.
const (
	offP = int(unsafe.Offsetof(kernel.VectorArgs{}.P))
	offN = int(unsafe.Offsetof(kernel.VectorArgs{}.N))
	offF = int(unsafe.Offsetof(kernel.VectorArgs{}.F))
	offR = int(unsafe.Offsetof(kernel.VectorArgs{}.R))
)

// Registers. Those of package lanes have a fixed role; most operations keep their operands in the
// others.
const (
	index    = lanes.Index
	left     = lanes.Left
	tailMask = lanes.TailMask
	scratch  = lanes.Scratch

	p0   = asm.RSI
	p1   = asm.RDX
	p2   = asm.RCX
	p3   = asm.R13
	n0   = asm.R8
	rows = asm.RBX
	tmp  = asm.R12
)

// Operands of arguments.
func argP(i int) asm.Mem { return asm.At(lanes.Args, offP+8*i) }
func argN(i int) asm.Mem { return asm.At(lanes.Args, offN+8*i) }
func argF(i int) asm.Mem { return asm.At(lanes.Args, offF+4*i) }
func argR(i int) asm.Mem { return asm.At(lanes.Args, offR+4*i) }

// pointers loads P[0], P[1], ... into the registers.
func (g gen) pointers(to ...asm.Reg) {
	for i, r := range to {
		g.Mov(r, argP(i))
	}
}

// advance adds to a pointer the stride in argument N[i], which counts float32. It overwrites tmp.
func (g gen) advance(p asm.Reg, i int, tmp asm.Reg) {
	g.Mov(tmp, argN(i))
	g.Lea(p, asm.AtIndex(p, tmp, 4, 0))
}
