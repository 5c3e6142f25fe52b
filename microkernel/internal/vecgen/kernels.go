package vecgen

import (
	"fmt"
	"math"

	"sandwich/microkernel/internal/asm"
)

// Kernel names a generated function.
type Kernel uint8

// The kernels. Arguments are listed at the function that emits each.
const (
	RMSNorm Kernel = iota
	LayerNorm
	RoPEHalves
	RoPEPairs
	SwiGLU
	GeGLU
	ClampedGLU
	SigmoidGLU
	SoftCap
	Add
	Plus
	AddScaled
	Scale
	Softmax
	Merge
	Finish
	QuantizeQ8
	RoundBF16
	RoundQuery // RoundBF16 that takes numbers below leastQuery for zeros
	ToF16
	ToF32
	Max
	FindEqual
	ExpSum
	Select
	StoreK16
	StoreV16
	WidenK8
	WidenV8
	ConvSiLU
	ConvGate
	Mul
	L2Norm
	Delta
	Count // number of kernels
)

var emitters = [Count]func(*gen){
	RMSNorm:    emitRMSNorm,
	LayerNorm:  emitLayerNorm,
	RoPEHalves: emitRoPEHalves,
	RoPEPairs:  emitRoPEPairs,
	SwiGLU:     emitSwiGLU,
	GeGLU:      emitGeGLU,
	ClampedGLU: emitClampedGLU,
	SigmoidGLU: emitSigmoidGLU,
	SoftCap:    emitSoftCap,
	Add:        emitAdd,
	Plus:       emitPlus,
	AddScaled:  emitAddScaled,
	Scale:      emitScale,
	Softmax:    emitSoftmax,
	Merge:      emitMerge,
	Finish:     emitFinish,
	QuantizeQ8: emitQuantizeQ8,
	RoundBF16:  func(g *gen) { emitRoundBF16(g, leastFloat) },
	RoundQuery: func(g *gen) { emitRoundBF16(g, math.Float32bits(leastQuery)) },
	ToF16:      emitToF16,
	ToF32:      emitToF32,
	Max:        emitMax,
	FindEqual:  emitFindEqual,
	ExpSum:     emitExpSum,
	Select:     emitSelect,
	StoreK16:   emitStoreK16,
	StoreV16:   emitStoreV16,
	WidenK8:    emitWidenK8,
	WidenV8:    emitWidenV8,
	ConvSiLU:   emitConvSiLU,
	ConvGate:   emitConvGate,
	Mul:        emitMul,
	L2Norm:     emitL2Norm,
	Delta:      emitDelta,
}

// Generate returns the position-independent code of kernel k. Equal arguments give equal bytes.
func Generate(level asm.Level, k Kernel) ([]byte, error) {
	g := newGen(level)
	emitters[k](g)
	code, err := g.finish()
	if err != nil {
		return nil, fmt.Errorf("vector kernel %d: %w", k, err)
	}
	return code, nil
}
