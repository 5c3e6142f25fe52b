package attention

import (
	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/kernel"
)

// spec is a kernel with the layout of its scratch memory and of opened blocks.
type spec struct{ kernel.AttentionSpec }

// positions is the number of positions in a block.
const positions = arith.BlockPositions

// An opened block for a bfloat16 dot product holds pairs: words of two consecutive k, k-major, in
// panels of 16 columns. Dimensions beyond the head and positions that no row sees are zeros.
//
//	K block  [64/16 panels of positions][keyDims/2][16 positions][2 dims]
//	V block  [paddedDim/16 panels of dims][32][16 dims][2 positions]
//
// An opened block for VPDPBUSD has transposed lines and float32 scales:
//
//	K block  [64/16 panels][headDim/4][16 positions][4 dims]uint8, 128 added  [headDim/32][64]float32
//	V block  [headDim/16 panels][64/4][16 dims][4 positions]int8              [headDim/32][64]float32
const (
	tileRows    = 16
	tileK       = 32 // k of a tile product
	tileBytes   = 1024
	pairPanel   = positions / 2 * 4 * arith.Lanes // bytes of a panel of values in pairs
	bf16Row     = 2 * positions                   // bytes of the bfloat16 probabilities of a row
	tilePanels  = 4                               // panels that tile products take side by side
	streamBytes = tilePanels * tileBytes          // of a buffer of streamed pairs
	buffers     = 2                               // of streamed pairs
)

// Quantized queries and probabilities of VPDPBUSD kernels.
const (
	querySet   = kernel.ActQ8Bytes // of 32 dimensions of a query, an ActQ8 block
	weightSets = 4                 // sets of dimensions whose largest weights are computed side by side
	lineBytes  = 64
	setLines   = arith.ScaleDims / 4           // lines of a panel of keys that share scales
	setPanels  = arith.ScaleDims / arith.Lanes // panels of values that share scales
	valueLines = 4                             // lines of a panel of values, sixteen positions
)

// Row counts at which kernels change strategy.
const (
	nearRows     = 8        // up to here memory limits, and lines are requested a second time
	fmaRows      = nearRows // up to here bfloat16 dot products are computed by FMAs
	twoPanelRows = 6        // up to here VPDPBUSD kernels keep two panels of scores in registers
)

// maxRows returns the largest Rows of a kernel: as many as the registers hold together with two
// panels of columns, or one with AVX2, or the rows of a tile; 0 without the dot product.
func maxRows(level asm.Level, d kernel.Dot) int {
	switch {
	case level == asm.AVX512 && d == kernel.TDPBF16:
		return tileRows
	case level == asm.AVX512 && (d == kernel.NoDot || d == kernel.DPBF16 || d == kernel.VNNI):
		return 12
	case d == kernel.NoDot:
		return 6
	}
	return 0
}

// bf16 reports whether the products are of bfloat16.
func (s spec) bf16() bool { return s.Dot.BF16() }

// integers reports whether the products are of integers.
func (s spec) integers() bool { return s.Dot == kernel.VNNI }

// byFMA reports whether FMAs of float32 compute the bfloat16 dot products (bf16_fma.go). Queries
// are widened sixteen elements at a time.
func (s spec) byFMA() bool {
	return s.bf16() && !s.Opened && s.Rows <= fmaRows && s.ElementBytes() < 4 && s.keyDims()%arith.Lanes == 0 &&
		(s.Dot == kernel.TDPBF16 || s.HeadDim%arith.Lanes == 0)
}

// chained reports whether the products are FMAs of float32 on the block as it is cached.
func (s spec) chained() bool { return s.Dot == kernel.NoDot || s.byFMA() }

// tiled reports whether tile registers compute the products.
func (s spec) tiled() bool { return s.Dot == kernel.TDPBF16 && !s.byFMA() }

// streams reports whether the kernel converts a cached block to pairs while it multiplies.
func (s spec) streams() bool { return s.tiled() && !s.Opened }

// chains returns the number of chains per element of a product.
func (s spec) chains() int {
	if s.byFMA() && s.Dot == kernel.TDPBF16 {
		return 2
	}
	return 1
}

// pairsReversed reports whether the chain adds the second of each pair of k first.
func (s spec) pairsReversed() bool { return s.byFMA() && s.Dot == kernel.DPBF16 }

// truncates reports whether the upper half of a float32 value is all of it.
func (s spec) truncates() bool { return s.F16 && s.HoldsBF16 }

// sets returns the number of sets of dimensions that have scales of their own.
func (s spec) sets() int { return s.HeadDim / arith.ScaleDims }

// keyDims returns the head dimension rounded up to whole steps of the dot product.
func (s spec) keyDims() int {
	step := 2
	if s.Dot == kernel.TDPBF16 {
		step = tileK
	}
	return (s.HeadDim + step - 1) / step * step
}

// queryLen returns the bytes of a query vector: float32, bfloat16 with zeros up to whole steps, or
// blocks of quantized activations.
func (s spec) queryLen() int {
	switch s.Dot {
	case kernel.NoDot:
		return 4 * s.HeadDim
	case kernel.VNNI:
		return s.sets() * querySet
	}
	return 2 * s.keyDims()
}

// openedBytes returns the bytes of an opened block of keys and values.
func (s spec) openedBytes() int {
	if s.integers() {
		return 2 * (positions*s.HeadDim + 4*positions*s.sets())
	}
	return s.pairKeyBytes() + s.PaddedDim()/arith.Lanes*pairPanel
}

func (s spec) pairKeyBytes() int { return positions * s.keyDims() * 2 }

// keyBytes returns the distance from a block of keys to its values.
func (s spec) keyBytes() int {
	switch {
	case s.Opened && s.integers():
		return s.openedBytes() / 2
	case s.Opened:
		return s.pairKeyBytes()
	}
	return positions*s.HeadDim*s.ElementBytes() + 2*s.ScaleFloats()
}

// operandBytes returns the size of an element of the products: of a cached element, or a pair.
func (s spec) operandBytes() int {
	if !s.chained() {
		return 4
	}
	return s.ElementBytes()
}

// scoreSteps returns the k-steps of a score: dimensions, or pairs of them.
func (s spec) scoreSteps() int {
	if !s.chained() {
		return s.keyDims() / 2
	}
	return s.HeadDim
}

// stepsPerScale returns the k-steps of a score that share scales.
func (s spec) stepsPerScale() int {
	if s.Int8 && s.chained() {
		return arith.ScaleDims
	}
	return max(1, s.scoreSteps())
}

// scratchBytes returns the size of the scratch memory of a call.
func (s spec) scratchBytes() int {
	switch {
	case s.integers():
		return s.valueScalesAt() + 4*positions*s.sets()
	case s.byFMA():
		return s.fmaBytes()
	case s.streams():
		return max(s.fmaBytes(), s.pairsAt()+buffers*streamBytes)
	case s.Dot != kernel.NoDot && !s.Opened:
		return max(s.fmaBytes(), s.pairsAt()+s.openedBytes())
	}
	return s.scalesAt() + 2*s.ScaleFloats()*4
}

// bf16At returns the offset in scratch of the bfloat16 probabilities.
func (s spec) bf16At() int { return kernel.ScratchScores + s.Rows*kernel.ScratchRow }

// scalesAt returns the offset in scratch of the widened scales of the keys; those of the values
// follow.
func (s spec) scalesAt() int {
	if !s.chained() {
		return s.bf16At() + s.Rows*bf16Row
	}
	return kernel.ScratchScores + s.Rows*kernel.ScratchRow
}

// pairsAt returns the offset in scratch of a block in pairs.
func (s spec) pairsAt() int { return s.scalesAt() + 2*s.ScaleFloats()*4 }

// bufferAt returns the offset in scratch of the streamed pairs of step k.
func (s spec) bufferAt(k int) int { return s.pairsAt() + k%buffers*streamBytes }

// queriesAt returns the offset in scratch of the queries widened to float32.
func (s spec) queriesAt() int { return s.scalesAt() + 2*s.ScaleFloats()*4 }

// sumsAt returns the offset in scratch of the sums of values of FMA kernels.
func (s spec) sumsAt() int { return s.queriesAt() + 4*s.Rows*s.keyDims() }

// fmaBytes returns scratchBytes of an FMA kernel of as many rows, or of fmaRows.
func (s spec) fmaBytes() int {
	s.Rows = min(s.Rows, fmaRows)
	return s.sumsAt() + 4*s.Rows*s.PaddedDim()
}

// weightsAt returns the offset in scratch of the quantized weights of VPDPBUSD kernels: 64 bytes
// for each row and set. The scales of the weights follow, then the inverses of the sets at hand
// and, unless the block is opened, the scales of values as float32.
func (s spec) weightsAt() int      { return kernel.ScratchScores + s.Rows*kernel.ScratchRow }
func (s spec) weightScalesAt() int { return s.weightsAt() + s.Rows*s.sets()*positions }

// weightScaleRow returns the bytes between the weight scales of rows.
func (s spec) weightScaleRow() int { return (s.sets() + weightSets - 1) / weightSets * weightSets * 4 }
func (s spec) inversesAt() int     { return s.weightScalesAt() + s.Rows*s.weightScaleRow() }
func (s spec) valueScalesAt() int  { return (s.inversesAt() + 4*weightSets + 63) &^ 63 }

// integerColumns returns the number of panels of scores for which a VPDPBUSD kernel keeps an
// integer and a float32 accumulator per row in registers. More panels for fewer rows would read
// from more places at once, and few rows are limited by memory.
func (s spec) integerColumns() int {
	if s.Rows <= twoPanelRows {
		return 2
	}
	return 1
}
