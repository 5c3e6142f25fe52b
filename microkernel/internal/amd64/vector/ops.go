package vector

import (
	"fmt"
	"math"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/kernel"
)

// Generator implements kernel.VectorGenerator for one level of amd64.
type Generator struct{ Level asm.Level }

var emitters = [kernel.VectorOps]func(gen){
	kernel.OpRMSNorm:              emitRMSNorm,
	kernel.OpLayerNorm:            emitLayerNorm,
	kernel.OpRoPEHalves:           emitRoPEHalves,
	kernel.OpRoPEPairs:            emitRoPEPairs,
	kernel.OpSwiGLU:               emitSwiGLU,
	kernel.OpGeGLU:                emitGeGLU,
	kernel.OpClampedGLU:           emitClampedGLU,
	kernel.OpSigmoidGLU:           emitSigmoidGLU,
	kernel.OpSoftCap:              emitSoftCap,
	kernel.OpAdd:                  emitAdd,
	kernel.OpPlus:                 emitPlus,
	kernel.OpAddScaled:            emitAddScaled,
	kernel.OpScale:                emitScale,
	kernel.OpSoftmax:              emitSoftmax,
	kernel.OpMerge:                emitMerge,
	kernel.OpFinish:               emitFinish,
	kernel.OpQuantizeQ8:           emitQuantizeQ8,
	kernel.OpQuantizeQ8Superblock: emitQuantizeQ8Superblock,
	kernel.OpRoundBF16:            func(g gen) { emitRoundBF16(g, arith.NormalBits) },
	kernel.OpRoundQuery:           func(g gen) { emitRoundBF16(g, math.Float32bits(arith.LeastQuery)) },
	kernel.OpToF16:                emitToF16,
	kernel.OpToF32:                emitToF32,
	kernel.OpMax:                  emitMax,
	kernel.OpFindEqual:            emitFindEqual,
	kernel.OpExpSum:               emitExpSum,
	kernel.OpSelect:               emitSelect,
	kernel.OpStoreK16:             func(g gen) { emitStoreK16(g, false) },
	kernel.OpStoreV16:             func(g gen) { emitStoreV16(g, false) },
	kernel.OpStorePanelK16:        func(g gen) { emitStorePanelK16(g, false) },
	kernel.OpStoreK16BF16:         func(g gen) { emitStoreK16(g, true) },
	kernel.OpStoreV16BF16:         func(g gen) { emitStoreV16(g, true) },
	kernel.OpStorePanelK16BF16:    func(g gen) { emitStorePanelK16(g, true) },
	kernel.OpWidenK8:              emitWidenK8,
	kernel.OpWidenV8:              emitWidenV8,
	kernel.OpConvSiLU:             emitConvSiLU,
	kernel.OpConvGate:             emitConvGate,
	kernel.OpMul:                  emitMul,
	kernel.OpL2Norm:               emitL2Norm,
	kernel.OpDelta:                emitDelta,
	kernel.OpQuantizeQ8K:          emitQuantizeQ8K,
}

// avx2Only reports whether the code of an operation uses no more than AVX2 at every level.
func avx2Only(op kernel.VectorOp) bool {
	switch op {
	case kernel.OpStoreK16, kernel.OpStorePanelK16, kernel.OpStoreK16BF16, kernel.OpStorePanelK16BF16:
		return true
	}
	return false
}

// Op returns the position-independent code of a row operation. Equal arguments give equal bytes.
func (v Generator) Op(op kernel.VectorOp) ([]byte, error) {
	level := v.Level
	if avx2Only(op) {
		level = asm.AVX2
	}
	g := newGen(level)
	emitters[op](g)
	machine, err := g.End()
	if err != nil {
		return nil, fmt.Errorf("row operation %d: %w", op, err)
	}
	return machine, nil
}
