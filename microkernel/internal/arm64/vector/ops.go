// Package vector emits the row operations and the fused attention kernels of arm64 for NEON. The
// arguments of each operation are those of the emitter of the same name in amd64/vector; the
// plain-Go definitions are in package vec.
//
// A group of sixteen float32 is four registers, a block, so that the sixteen virtual lanes of a
// reduction (package arith) are the lanes of one block. A partial group is copied word by word
// through 64 bytes below the stack pointer.
//
// The package must not import arm64/gemm.
package vector

import (
	"fmt"
	"math"

	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/arm64/asm"
	"sandwich/microkernel/internal/kernel"
)

// Generator implements kernel.VectorGenerator and kernel.AttentionGenerator for NEON.
type Generator struct{}

var emitters = [kernel.VectorOps]func(gen){
	kernel.OpRMSNorm:    emitRMSNorm,
	kernel.OpLayerNorm:  emitLayerNorm,
	kernel.OpRoPEHalves: emitRoPEHalves,
	kernel.OpRoPEPairs:  emitRoPEPairs,
	kernel.OpSwiGLU:     emitSwiGLU,
	kernel.OpGeGLU:      emitGeGLU,
	kernel.OpClampedGLU: emitClampedGLU,
	kernel.OpSigmoidGLU: emitSigmoidGLU,
	kernel.OpSoftCap:    emitSoftCap,
	kernel.OpAdd:        emitAdd,
	kernel.OpPlus:       emitPlus,
	kernel.OpAddScaled:  emitAddScaled,
	kernel.OpScale:      emitScale,
	kernel.OpSoftmax:    emitSoftmax,
	kernel.OpMerge:      emitMerge,
	kernel.OpFinish:     emitFinish,
	kernel.OpQuantizeQ8: emitQuantizeQ8,
	kernel.OpRoundBF16:  func(g gen) { emitRoundBF16(g, arith.NormalBits) },
	kernel.OpRoundQuery: func(g gen) { emitRoundBF16(g, math.Float32bits(arith.LeastQuery)) },
	kernel.OpToF16:      emitToF16,
	kernel.OpToF32:      emitToF32,
	kernel.OpMax:        emitMax,
	kernel.OpFindEqual:  emitFindEqual,
	kernel.OpExpSum:     emitExpSum,
	kernel.OpSelect:     emitSelect,
	kernel.OpStoreK16:   emitStoreK16,
	kernel.OpStoreV16:   emitStoreV16,
	kernel.OpWidenK8:    emitWidenK8,
	kernel.OpWidenV8:    emitWidenV8,
	kernel.OpConvSiLU:   emitConvSiLU,
	kernel.OpConvGate:   emitConvGate,
	kernel.OpMul:        emitMul,
	kernel.OpL2Norm:     emitL2Norm,
	kernel.OpDelta:      emitDelta,
}

// plainGo are the operations that have no NEON code: keys are stored token by token, attention does
// not read bfloat16, and no GEMM kernel reads superblock activations.
var plainGo = map[kernel.VectorOp]bool{kernel.OpQuantizeQ8Superblock: true, kernel.OpQuantizeQ8K: true,
	kernel.OpStorePanelK16: true, kernel.OpStoreK16BF16: true, kernel.OpStoreV16BF16: true,
	kernel.OpStorePanelK16BF16: true}

// Op returns the position-independent code of a row operation, or no code and no error for the
// operations that are left to plain Go.
func (Generator) Op(op kernel.VectorOp) ([]byte, error) {
	if plainGo[op] {
		return nil, nil
	}
	if emitters[op] == nil {
		return nil, fmt.Errorf("row operation %d has no NEON code", op)
	}
	g := gen{asm.New(asm.Base)}
	g.AddImm(asm.SP, asm.SP, -4*arith.Lanes)
	emitters[op](g)
	g.AddImm(asm.SP, asm.SP, 4*arith.Lanes)
	g.Ret()
	machine, err := g.Finish()
	if err != nil {
		return nil, fmt.Errorf("row operation %d: %w", op, err)
	}
	return machine, nil
}

// Transpose returns no code: rows are packed in plain Go.
func (Generator) Transpose(kernel.Transpose) ([]byte, error) { return nil, nil }
