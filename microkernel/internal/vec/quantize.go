package vec

import (
	"unsafe"

	"sandwich/microkernel/internal/kernel"
)

// quantizeRowQ8 quantizes k activations (a multiple of 32) to int8 in blocks of 32, the ActQ8
// blocks that integer GEMM kernels read: scale = amax/127, q = x * (127/amax) rounded to nearest
// even, bias = -128 times the sum of the block's q. A block with amax < 2^-120 becomes scale 0 and
// zeros; one with an infinity or NaN becomes scale NaN and zeros.
func (v *Vec) quantizeRowQ8(x *float32, k int, row unsafe.Pointer) {
	if !v.native {
		refQuantizeRowQ8(x, k, row)
		return
	}
	args := kernel.VectorArgs{P: pointers{ptr(x), row}, N: lengths{k / kernel.ActQ8Block}}
	v.call(kernel.OpQuantizeQ8, &args)
}

// quantizeRowQ8Superblock is quantizeRowQ8 with one scale for 256 activations and sums that are
// not multiplied by it: the rows that kernels of ComputeInt8Superblock read. k is a multiple of
// 256.
func (v *Vec) quantizeRowQ8Superblock(x *float32, k int, row unsafe.Pointer) {
	if !v.has(kernel.OpQuantizeQ8Superblock) {
		refQuantizeRowQ8Superblock(x, k, row)
		return
	}
	args := kernel.VectorArgs{P: pointers{ptr(x), row}, N: lengths{k / kernel.ActQ8Group}}
	v.call(kernel.OpQuantizeQ8Superblock, &args)
}

// quantizeRowQ8K quantizes k activations with one scale for 256: the rows that kernels of
// ComputeInt8K read. k is a multiple of 256.
func (v *Vec) quantizeRowQ8K(x *float32, k int, row unsafe.Pointer) {
	if !v.has(kernel.OpQuantizeQ8K) {
		refQuantizeRowQ8K(x, k, row)
		return
	}
	args := kernel.VectorArgs{P: pointers{ptr(x), row}, N: lengths{k / kernel.ActQ8Group}}
	v.call(kernel.OpQuantizeQ8K, &args)
}

// roundRowBF16 rounds k activations to bfloat16, ties to even, and writes a zero after an odd k:
// the rows that kernels of ComputeBF16 read. Subnormal numbers become zeros of their sign; a NaN
// becomes quiet.
func (v *Vec) roundRowBF16(x *float32, k int, row unsafe.Pointer) {
	v.roundRow(kernel.OpRoundBF16, x, k, row)
}

// roundQueryBF16 is roundRowBF16 for a query: elements below arith.LeastQuery become zeros.
func (v *Vec) roundQueryBF16(x *float32, k int, row unsafe.Pointer) {
	v.roundRow(kernel.OpRoundQuery, x, k, row)
}

func (v *Vec) roundRow(op kernel.VectorOp, x *float32, k int, row unsafe.Pointer) {
	if !v.native {
		refRoundRowBF16(op, x, k, row)
		return
	}
	args := kernel.VectorArgs{P: pointers{row, ptr(x)}, N: lengths{k}}
	v.call(op, &args)
	if k%2 == 1 {
		*(*uint16)(unsafe.Add(row, 2*k)) = 0
	}
}

// QuantizeRow converts k activations to the form that a compute path reads: ActQ8 blocks, ActQ8K
// superblocks, or bfloat16 with zeros after the last one up to a whole step. ComputeF32 reads them
// unchanged.
func (v *Vec) QuantizeRow(c kernel.Compute, x *float32, k int, row unsafe.Pointer) {
	switch c {
	case kernel.ComputeInt8:
		v.quantizeRowQ8(x, k, row)
	case kernel.ComputeInt8Superblock:
		v.quantizeRowQ8Superblock(x, k, row)
	case kernel.ComputeInt8K:
		v.quantizeRowQ8K(x, k, row)
	case kernel.ComputeBF16:
		v.roundRowBF16(x, k, row)
	case kernel.ComputeBF16Tile:
		v.roundRowBF16(x, k, row)
		clear(unsafe.Slice((*byte)(row), c.ActRowBytes(k))[2*k:])
	}
}

// f32ToF16 rounds n values to half precision, ties to even.
func (v *Vec) f32ToF16(dst *uint16, src *float32, n int) {
	if !v.native {
		refF32ToF16(dst, src, n)
		return
	}
	args := kernel.VectorArgs{P: pointers{ptr(dst), ptr(src)}, N: lengths{n}}
	v.call(kernel.OpToF16, &args)
}

// f16ToF32 converts n halves to float32.
func (v *Vec) f16ToF32(dst *float32, src *uint16, n int) {
	if !v.native {
		refF16ToF32(dst, src, n)
		return
	}
	args := kernel.VectorArgs{P: pointers{ptr(dst), ptr(src)}, N: lengths{n}}
	v.call(kernel.OpToF32, &args)
}
