package gemm

import (
	"unsafe"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// The functions of this file let tests interpret kernels of AMX on machines without it.

// AMXSubBlocks is the largest number of sub-blocks in a piece of k.
const AMXSubBlocks = amxDepth / qtype.SubBlockK

// AMXArgs are the arguments of a tile function of Dot AMX.
type AMXArgs struct{ amxArgs }

// Run computes a call of a kernel by calls of tile functions.
func (a *AMXArgs) Run(k *kernel.Tiles, g *kernel.GemmArgs, call func(f jit.Func, args unsafe.Pointer)) {
	a.run(k, *g, func(f jit.Func, args *amxArgs) { call(f, unsafe.Pointer(args)) })
}

// EmitAMX generates a tile of Dot AMX.
func EmitAMX(a *asm.Asm, s kernel.Spec) {
	_, emit := newAMX(a, spec{s})
	emit()
}

// NewAMXArgs allocates arguments.
func NewAMXArgs() *AMXArgs { return (*AMXArgs)(unsafe.Pointer(amxPool.New().(*amxArgs))) }
