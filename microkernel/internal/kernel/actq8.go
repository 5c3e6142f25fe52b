package kernel

import "unsafe"

// A row of quantized activations, what ComputeInt8 kernels read as A, is K/32 blocks of ActQ8Bytes
// bytes, ascending in k:
//
//	offset 0   float32    scale: the largest magnitude of the block divided by 127
//	offset 4   int32      bias: -128 times the sum of the 32 integers
//	offset 8   [32]int8   round to nearest even of value / scale, within -127 and 127
//	offset 40  [2]int16   halves: the sums of the first and of the last sixteen integers
//	offset 44  float32    sum: the sum of the 32 integers, as float32, times the scale
//
// The bias turns the dot product with weights that are stored with 128 added into the signed one;
// the halves do so for weights whose scales belong to sixteen k; the sum meets the offsets of
// weights that have them. A block of zeros has scale 0.
//
// ComputeInt8Long reads the same blocks, of which eight in turn, a group, have one scale, that of
// the largest magnitude of their 256 values; their sums are not multiplied by it.
const (
	ActQ8Bytes = 48
	ActQ8Block = 32
	ActQ8Group = 256
)

// ActQ8 is one block, for plain-Go access to rows.
type ActQ8 struct {
	Scale    float32
	Bias     int32
	Q        [ActQ8Block]int8
	HalfSums [2]int16
	Sum      float32
}

// ActQ8RowBytes is the length of a row of k activations; k is a multiple of 32.
func ActQ8RowBytes(k int) int { return k / ActQ8Block * ActQ8Bytes }

// ActRowBytes is the length of a row of k activations in the form that a compute path reads; for k
// before the end, where element k begins.
func (c Compute) ActRowBytes(k int) int {
	switch c {
	case ComputeInt8, ComputeInt8Long:
		return ActQ8RowBytes(k)
	case ComputeBF16:
		return ActBF16RowBytes(k)
	}
	return 4 * k
}

// ActQ8At is block b of a row.
func ActQ8At(row unsafe.Pointer, b int) *ActQ8 { return (*ActQ8)(unsafe.Add(row, b*ActQ8Bytes)) }

// SetSums computes what is derived from the integers, and the factor that the sum gets.
func (q *ActQ8) SetSums(factor float32) {
	q.HalfSums = [2]int16{}
	for i, v := range q.Q {
		q.HalfSums[i/16] += int16(v)
	}
	sum := int32(q.HalfSums[0]) + int32(q.HalfSums[1])
	q.Bias = -128 * sum
	q.Sum = float32(sum) * factor
}

// Where things stand in a block, for code that reads it.
const (
	ActScale    = 0
	ActBias     = 4
	ActQ        = 8
	ActHalfSums = 40
	ActSum      = 44
)
