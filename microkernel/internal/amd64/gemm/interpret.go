package gemm

import (
	"unsafe"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// What a test needs that runs kernels of AMX where there is none, with the tile instructions
// interpreted.

// AMXSubBlocks is the most sub-blocks of a piece of k.
const AMXSubBlocks = amxDepth / qtype.SubBlockK

// AMXArgs is the arguments of a tile function of Dot AMX.
type AMXArgs struct{ amxArgs }

// Run does a call as a kernel does, by calls of tile functions.
func (a *AMXArgs) Run(k *kernel.Tiles, g *kernel.GemmArgs, call func(f jit.Func, args unsafe.Pointer)) {
	a.run(k, *g, func(f jit.Func, args *amxArgs) { call(f, unsafe.Pointer(args)) })
}

// EmitAMX generates a tile of Dot AMX.
func EmitAMX(a *asm.Asm, s kernel.Spec) {
	_, emit := newAMX(a, spec{s})
	emit()
}

// NewAMXArgs makes room for them.
func NewAMXArgs() *AMXArgs { return (*AMXArgs)(unsafe.Pointer(amxPool.New().(*amxArgs))) }
