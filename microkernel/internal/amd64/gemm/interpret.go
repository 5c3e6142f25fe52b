package gemm

import (
	"unsafe"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/amd64/matrix"
	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// The functions of this file let tests interpret kernels of AMX on machines without it.

// AMXSubBlocks is the largest number of sub-blocks in a piece of k.
const AMXSubBlocks = amxDepth / qtype.SubBlockK

// AMXArgs are the arguments of tile functions of a kernel that uses tile registers. Only those of
// its path are allocated.
type AMXArgs struct {
	blocks *amxArgs
	planes *matrix.PlanesArgs
	bf16   *matrix.BF16Args
}

// NewAMXArgs allocates the arguments of a kernel and fills them with a pattern, as a pool may
// return arguments of another call.
func NewAMXArgs(s kernel.Spec) *AMXArgs {
	switch s.Compute {
	case kernel.ComputeInt8K:
		return &AMXArgs{planes: dirty(matrix.NewPlanesArgs())}
	case kernel.ComputeBF16Tile:
		return &AMXArgs{bf16: dirty(matrix.NewBF16Args())}
	}
	return &AMXArgs{blocks: dirty(amxPool.New().(*amxArgs))}
}

// dirty fills arguments with a pattern.
func dirty[T any](args *T) *T {
	for i := range unsafe.Slice((*byte)(unsafe.Pointer(args)), unsafe.Sizeof(*args)) {
		*(*byte)(unsafe.Add(unsafe.Pointer(args), i)) = 0xA5
	}
	return args
}

// Run computes a call of a kernel by calls of tile functions.
func (a *AMXArgs) Run(k *kernel.Tiles, g *kernel.GemmArgs, call func(f jit.Func, args unsafe.Pointer)) {
	switch {
	case a.planes != nil:
		unpack, err := planeMakers.Get(k.Spec.B)
		if err != nil {
			panic(err)
		}
		a.planes.Run(k, *g, unpack, func(f jit.Func, args *matrix.PlanesArgs) { call(f, unsafe.Pointer(args)) })
	case a.bf16 != nil:
		a.bf16.Run(k, *g, func(f jit.Func, args *matrix.BF16Args) { call(f, unsafe.Pointer(args)) })
	default:
		a.blocks.run(k, *g, func(f jit.Func, args *amxArgs) { call(f, unsafe.Pointer(args)) })
	}
}

// EmitAMX generates a tile of a kernel that uses tile registers.
func EmitAMX(a *asm.Asm, s kernel.Spec) {
	_, emit := spec{s}.generator()(a, spec{s})
	emit()
}
