package kernel

import "unsafe"

// VectorOp names a generated row operation.
type VectorOp uint8

// The row operations. The arguments of each are listed at the function that emits it in the
// packages amd64/vector and arm64/vector.
const (
	OpRMSNorm VectorOp = iota
	OpLayerNorm
	OpRoPEHalves
	OpRoPEPairs
	OpSwiGLU
	OpGeGLU
	OpClampedGLU
	OpSigmoidGLU
	OpSoftCap
	OpAdd
	OpPlus
	OpAddScaled
	OpScale
	OpSoftmax
	OpMerge
	OpFinish
	OpQuantizeQ8
	OpQuantizeQ8Superblock
	OpRoundBF16
	OpRoundQuery // OpRoundBF16 that replaces elements below arith.LeastQuery by zeros
	OpToF16
	OpToF32
	OpMax
	OpFindEqual
	OpExpSum
	OpSelect
	OpStoreK16
	OpStoreV16
	OpStorePanelK16 // sixteen tokens
	OpStoreK16BF16  // this and the next two round to bfloat16 first
	OpStoreV16BF16
	OpStorePanelK16BF16
	OpWidenK8
	OpWidenV8
	OpConvSiLU
	OpConvGate
	OpMul
	OpL2Norm
	OpDelta
	OpQuantizeQ8K
	VectorOps // number of row operations
)

// VectorArgs are the arguments of a row operation. The emitters document the meaning of each field;
// lengths and strides in N count elements unless stated otherwise.
type VectorArgs struct {
	P [10]unsafe.Pointer
	N [6]int
	F [4]float32
	R [2]int32 // results
}

// Transpose names how rows of weights become the columns of a panel.
type Transpose uint8

// The transposes of sixteen rows that lie TransposeStride bytes apart. Arguments: P panel, rows; N
// words of 32 bits of a row, divided by four. A line of the panel has one element of each row.
const (
	TransposeWords  Transpose = iota // elements are 32-bit words, or pairs: lines of 64 bytes
	TransposeHalves                  // elements are halves of words: lines of 32 bytes
	Transposes                       // number of transposes
)

// TransposeStride is not a power of two, so that the lines of sixteen rows map to different sets of
// the first-level cache.
const TransposeStride = 1024 + 64
