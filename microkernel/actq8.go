package microkernel

import "unsafe"

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
