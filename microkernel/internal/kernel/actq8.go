package kernel

import "unsafe"

// A row of quantized activations, the operand A of ComputeInt8 kernels, is K/32 blocks of
// ActQ8Bytes bytes, ascending in k:
//
//	offset 0   float32    scale: the largest magnitude of the block divided by 127
//	offset 4   int32      bias: -128 times the sum of the 32 integers
//	offset 8   [32]int8   value / scale rounded to nearest even, within -127 and 127
//	offset 40  [2]int16   half sums: the sums of the first and of the last sixteen integers
//	offset 44  float32    sum: the sum of the 32 integers, as float32, times the scale
//
// The bias turns the dot product with weights that are stored with 128 added into the signed one.
// The half sums do so for weights with a scale for every sixteen k. The sum is multiplied by the
// offsets of weights that have them. A block of zeros has scale 0.
//
// ComputeInt8Superblock reads the same blocks. Eight consecutive blocks, a superblock, then have
// one scale, derived from the largest magnitude of their 256 values, and their sums are not
// multiplied by it.
const (
	ActQ8Bytes = 48
	ActQ8Block = 32
	ActQ8Group = 256 // elements of a superblock
)

// ActQ8 is one block, for plain-Go access to rows.
type ActQ8 struct {
	Scale    float32
	Bias     int32
	Q        [ActQ8Block]int8
	HalfSums [2]int16
	Sum      float32
}

// Offsets of the fields of a block in bytes, for generated code.
const (
	ActScale    = 0
	ActBias     = 4
	ActQ        = 8
	ActHalfSums = 40
	ActSum      = 44
)

// ActQ8RowBytes returns the length of a row of k activations; k is a multiple of 32.
func ActQ8RowBytes(k int) int { return k / ActQ8Block * ActQ8Bytes }

// ActQ8At returns block b of a row.
func ActQ8At(row unsafe.Pointer, b int) *ActQ8 { return (*ActQ8)(unsafe.Add(row, b*ActQ8Bytes)) }

// SetSums computes the fields derived from the integers. factor multiplies Sum.
func (q *ActQ8) SetSums(factor float32) {
	q.HalfSums = [2]int16{}
	for i, v := range q.Q {
		q.HalfSums[i/16] += int16(v)
	}
	sum := int32(q.HalfSums[0]) + int32(q.HalfSums[1])
	q.Bias = -128 * sum
	q.Sum = float32(sum) * factor
}

// A row of ComputeInt8K is K/256 superblocks of ActQ8KBytes bytes, ascending in k. Their numbers
// are contiguous, so that a matrix unit loads rows of 64 k from memory.
//
//	offset 0    [256]int8   value / scale rounded to nearest even, within -127 and 127
//	offset 256  [16]int16   half sums: the sums of sixteen consecutive integers
//	offset 288  [8]int16    sums: the sums of 32 consecutive integers
//	offset 304  float32     scale: the largest magnitude of the superblock divided by 127
//	offset 308  12 bytes    zeros
//
// The half sums and sums are the factors of offsets and zero-points of weights.
const ActQ8KBytes = 320

// ActQ8K is one superblock, for plain-Go access to rows.
type ActQ8K struct {
	Q        [ActQ8Group]int8
	HalfSums [ActQ8Group / 16]int16
	Sums     [ActQ8Group / ActQ8Block]int16
	Scale    float32
	_        [12]byte
}

// Offsets of the fields of a superblock in bytes, for generated code.
const (
	ActKHalfSums = 256
	ActKSums     = 288
	ActKScale    = 304
)

// ActQ8KRowBytes returns the length of a row of k activations; k is a multiple of 256.
func ActQ8KRowBytes(k int) int { return k / ActQ8Group * ActQ8KBytes }

// ActQ8KAt returns superblock b of a row.
func ActQ8KAt(row unsafe.Pointer, b int) *ActQ8K { return (*ActQ8K)(unsafe.Add(row, b*ActQ8KBytes)) }

// SetSums computes the fields derived from the integers.
func (q *ActQ8K) SetSums() {
	q.HalfSums, q.Sums = [ActQ8Group / 16]int16{}, [ActQ8Group / ActQ8Block]int16{}
	for i, v := range q.Q {
		q.HalfSums[i/16] += int16(v)
		q.Sums[i/ActQ8Block] += int16(v)
	}
}
