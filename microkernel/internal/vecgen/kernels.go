package vecgen

import (
	"fmt"
	"math"

	"sandwich/microkernel/internal/amd64/asm"
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
	QuantizeQ8Long
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
	StorePanelK16 // of sixteen tokens
	StoreK16BF16  // these three round to bfloat16 first
	StoreV16BF16
	StorePanelK16BF16
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
	RMSNorm:           emitRMSNorm,
	LayerNorm:         emitLayerNorm,
	RoPEHalves:        emitRoPEHalves,
	RoPEPairs:         emitRoPEPairs,
	SwiGLU:            emitSwiGLU,
	GeGLU:             emitGeGLU,
	ClampedGLU:        emitClampedGLU,
	SigmoidGLU:        emitSigmoidGLU,
	SoftCap:           emitSoftCap,
	Add:               emitAdd,
	Plus:              emitPlus,
	AddScaled:         emitAddScaled,
	Scale:             emitScale,
	Softmax:           emitSoftmax,
	Merge:             emitMerge,
	Finish:            emitFinish,
	QuantizeQ8:        emitQuantizeQ8,
	QuantizeQ8Long:    emitQuantizeQ8Long,
	RoundBF16:         func(g *gen) { emitRoundBF16(g, leastFloat) },
	RoundQuery:        func(g *gen) { emitRoundBF16(g, math.Float32bits(leastQuery)) },
	ToF16:             emitToF16,
	ToF32:             emitToF32,
	Max:               emitMax,
	FindEqual:         emitFindEqual,
	ExpSum:            emitExpSum,
	Select:            emitSelect,
	StoreK16:          func(g *gen) { emitStoreK16(g, false) },
	StoreV16:          func(g *gen) { emitStoreV16(g, false) },
	StorePanelK16:     func(g *gen) { emitStorePanelK16(g, false) },
	StoreK16BF16:      func(g *gen) { emitStoreK16(g, true) },
	StoreV16BF16:      func(g *gen) { emitStoreV16(g, true) },
	StorePanelK16BF16: func(g *gen) { emitStorePanelK16(g, true) },
	WidenK8:           emitWidenK8,
	WidenV8:           emitWidenV8,
	ConvSiLU:          emitConvSiLU,
	ConvGate:          emitConvGate,
	Mul:               emitMul,
	L2Norm:            emitL2Norm,
	Delta:             emitDelta,
}

// ofEights tells which kernels use no more than AVX2.
func ofEights(k Kernel) bool {
	switch k {
	case StoreK16, StorePanelK16, StoreK16BF16, StorePanelK16BF16:
		return true
	}
	return false
}

// Generate returns the position-independent code of kernel k. Equal arguments give equal bytes.
func Generate(level asm.Level, k Kernel) ([]byte, error) {
	if ofEights(k) {
		level = asm.AVX2
	}
	g := newGen(level)
	emitters[k](g)
	code, err := g.finish()
	if err != nil {
		return nil, fmt.Errorf("vector kernel %d: %w", k, err)
	}
	return code, nil
}
