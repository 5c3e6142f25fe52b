package microkernel

import (
	"math"
	"unsafe"
)

// A row of quantized activations, what ComputeInt8 kernels read as A, is K/32 blocks of ActQ8Bytes bytes, ascending in k:
//
//	offset 0   float32   scale: the largest magnitude of the block divided by 127
//	offset 4   int32     bias: -128 times the sum of the 32 integers
//	offset 8   [32]int8  round to nearest even of value / scale, within -127 and 127
//
// The bias turns the dot product with weights that are stored with 128 added into the signed one. A block of zeros has scale 0.
const (
	ActQ8Bytes = 40
	ActQ8Block = 32
)

// ActQ8 is one block, for plain-Go access to rows.
type ActQ8 struct {
	Scale float32
	Bias  int32
	Q     [ActQ8Block]int8
}

// ActQ8RowBytes is the length of a row of k activations; k is a multiple of 32.
func ActQ8RowBytes(k int) int { return k / ActQ8Block * ActQ8Bytes }

// actQ8At is block b of a row.
func actQ8At(row unsafe.Pointer, b int) *ActQ8 { return (*ActQ8)(unsafe.Add(row, b*ActQ8Bytes)) }

// setBias computes the bias from the integers.
func (q *ActQ8) setBias() {
	sum := int32(0)
	for _, v := range q.Q {
		sum += int32(v)
	}
	q.Bias = -128 * sum
}

// halfToFloat is the exact value of a float16.
func halfToFloat(h uint16) float32 {
	sign := uint32(h>>15) << 31
	exp, frac := uint32(h>>10&31), uint32(h&1023)
	switch exp {
	case 0:
		v := float32(frac) * (1.0 / (1 << 24))
		return math.Float32frombits(math.Float32bits(v) | sign)
	case 31:
		if frac != 0 {
			frac |= 512 // a signalling NaN becomes quiet, as the conversion instructions do
		}
		return math.Float32frombits(sign | 0x7F800000 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}
