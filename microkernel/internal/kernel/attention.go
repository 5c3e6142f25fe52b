package kernel

import (
	"unsafe"

	"sandwich/microkernel/internal/arith"
)

// AttentionSpec describes a fused attention kernel: Rows query vectors against blocks of 64
// positions of one KV head. One call computes scores, softmax and value products and merges them
// into the running state.
type AttentionSpec struct {
	Rows      int      // query vectors, 1 to AttentionOps.Rows
	HeadDim   int      // elements of a query vector
	F16       bool     // K and V elements are half precision
	Int8      bool     // K and V elements are int8 with scales; without F16 and Int8 they are float32
	HoldsBF16 bool     // half-precision elements are rounded to bfloat16
	Window    bool     // rows skip the positions that StateSkip counts
	Capped    bool     // scores are soft-capped before the softmax
	Dot       Dot      // dot product of scores and values; NoDot: float32 FMAs
	Opened    bool     // blocks have been converted for Dot by AttentionOps.OpenBlock
	CPU       Features // what the kernel may use beyond its instruction set
}

// AttentionArgs are the arguments of a fused attention kernel.
type AttentionArgs struct {
	Q, State, Scratch, KV, Table unsafe.Pointer
	Blocks                       int            // entries of Table to process
	Pitch                        int            // bytes between blocks of consecutive ids
	Last                         unsafe.Pointer // last entry of Table whose block may be prefetched
	Scale                        float32        // of the scores, or of the capped scores
	After                        unsafe.Pointer // block to prefetch while processing the block of Last
	// A Capped kernel computes SoftCap*tanh(score*Factor/2) for each score.
	Factor, SoftCap float32
}

// Offsets of a state in bytes. A state has sixteen entries each of running maxima, running sums,
// positions up to the last one that the row sees, and positions before the first one it sees (int32
// both), then the output rows. Before the first block they are -Inf, 0, the positions counted from
// that block, and zeros.
const (
	StateRows = 16 // entries
	StateMax  = 0
	StateSum  = 64
	StateLeft = 128
	StateSkip = 192
	StateOut  = 256
)

// Offsets of the first part of scratch in bytes, which has the same layout on every instruction
// set.
const (
	ScratchSeen     = 0 // positions of the block that each row sees
	ScratchOldMul   = 64
	ScratchNewMul   = 128
	ScratchMax      = 192
	ScratchSum      = 256
	ScratchLargest  = 320 // the largest entry of ScratchSeen
	ScratchSmallest = 324 // the smallest entry of ScratchSeen
	ScratchAnyLow   = 328 // the largest entry of ScratchLow
	ScratchLow      = 384 // positions of the block before the first that each row sees
	ScratchScores   = 448 // scores, then probabilities: [rows][64]float32
)

// ScratchRow is the distance in bytes between rows of scores.
const ScratchRow = 4 * arith.BlockPositions

// AttentionSizes are the bytes of memory of an attention kernel that its instruction set decides.
type AttentionSizes struct {
	Scratch int // of one call
	Query   int // of a query vector
	Opened  int // of a K and a V block after OpenBlock
}

// PaddedDim returns the head dimension rounded up to whole panels: the length of an output row.
func (s AttentionSpec) PaddedDim() int {
	return (s.HeadDim + arith.Lanes - 1) / arith.Lanes * arith.Lanes
}

// StateBytes returns the size of a state of s.Rows rows.
func (s AttentionSpec) StateBytes() int { return StateOut + 4*s.Rows*s.PaddedDim() }

// ElementBytes returns the size of an element of a cached block.
func (s AttentionSpec) ElementBytes() int {
	switch {
	case s.Int8:
		return 1
	case s.F16:
		return 2
	}
	return 4
}

// ScaleFloats returns the number of scales of a block of keys, and of a block of values, that a
// kernel widens to float32 before it uses the block.
func (s AttentionSpec) ScaleFloats() int {
	if !s.Int8 || s.Opened {
		return 0
	}
	return s.HeadDim / arith.ScaleDims * arith.BlockPositions
}
