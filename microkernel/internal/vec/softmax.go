package vec

import (
	"math"

	"sandwich/microkernel/internal/kernel"
)

// SoftmaxBlock converts the scores of one attention block to unnormalized probabilities, row by
// row and in place. Row r has valid[r] scores (0 to width) of its `width` elements. With x =
// s*scale it sets max[r] = max(x, LowestScore*scale), ignoring NaN, the scores to p = exp(x -
// max[r]), the rest of the width to zeros, and sum[r] to the sum of p by sixteen lanes and the
// tree. A row without valid scores gets max = -Inf, sum = 0 and zeros. scale > 0. With rows = 1
// and width = vocabulary it is the softmax of a sampler.
func (v *Vec) SoftmaxBlock(scores *float32, stride, rows, width int, valid *int32, scale float32, max, sum *float32) {
	if !v.native {
		refSoftmaxBlock(scores, stride, rows, width, valid, scale, max, sum)
		return
	}
	args := kernel.VectorArgs{P: pointers{ptr(scores), ptr(valid), ptr(max), ptr(sum)}, N: lengths{stride, rows,
		width}, F: floats{scale}}
	v.call(kernel.OpSoftmax, &args)
}

// mergeBlock merges the (max, sum, output) of one attention block, mb, sb and ob[rows][headDim],
// into the running m, s and o of the same rows. The caller starts a row with m = -Inf; s and o may
// then be undefined. A block with mb = -Inf changes nothing. Milakov, Gimelshein: Online
// normalizer calculation for softmax, 2018.
func (v *Vec) mergeBlock(o *float32, oStride int, m, s *float32, ob *float32, obStride int, mb, sb *float32, rows,
	headDim int) {
	if !v.native {
		refMergeBlock(o, oStride, m, s, ob, obStride, mb, sb, rows, headDim)
		return
	}
	args := kernel.VectorArgs{P: pointers{ptr(o), ptr(m), ptr(s), ptr(ob), ptr(mb), ptr(sb)}, N: lengths{oStride,
		obStride, rows, headDim}}
	v.call(kernel.OpMerge, &args)
}

// finishAttention writes dst = o * (1/s) for each row. A row sees at least its own position, so
// its sum is at least 1; if scores overflowed, the sum is NaN or zero and the row becomes NaN.
func (v *Vec) finishAttention(dst *float32, dstStride int, o *float32, oStride int, s *float32, rows, headDim int) {
	if !v.native {
		refFinishAttention(dst, dstStride, o, oStride, s, rows, headDim)
		return
	}
	args := kernel.VectorArgs{P: pointers{ptr(dst), ptr(o), ptr(s)}, N: lengths{dstStride, oStride, rows, headDim}}
	v.call(kernel.OpFinish, &args)
}

// Max returns the largest of n values, ignoring NaN, or -Inf if there are none.
func (v *Vec) Max(x *float32, n int) float32 {
	if !v.native {
		return refMax(x, n)
	}
	args := kernel.VectorArgs{P: pointers{ptr(x)}, N: lengths{n}}
	v.call(kernel.OpMax, &args)
	return math.Float32frombits(uint32(args.R[0]))
}

// Argmax returns the index of the first of the largest values, ignoring NaN, or 0 if none exceeds
// -Inf.
func (v *Vec) Argmax(x *float32, n int) int {
	if !v.native {
		return refArgmax(x, n)
	}
	top := v.Max(x, n)
	if top == negInf {
		return 0
	}
	args := kernel.VectorArgs{P: pointers{ptr(x)}, N: lengths{n}, F: floats{top}}
	v.call(kernel.OpFindEqual, &args)
	return int(args.R[0])
}

// ExpSum returns the sum of exp(x[i]*scale - max*scale) by sixteen lanes and the tree; x is
// unchanged. With max = Max(x, n), its logarithm is that of the softmax denominator.
func (v *Vec) ExpSum(x *float32, n int, scale, max float32) float32 {
	if !v.native {
		return refExpSum(x, n, scale, max)
	}
	args := kernel.VectorArgs{P: pointers{ptr(x)}, N: lengths{n}, F: floats{scale, max * scale}}
	v.call(kernel.OpExpSum, &args)
	return math.Float32frombits(uint32(args.R[0]))
}

// SelectAbove writes the indices of the values that are at least t, ascending, to idx and returns
// their number. Only the first `limit` are written, so that a sampler detects a threshold that is
// too low.
func (v *Vec) SelectAbove(x *float32, n int, t float32, idx *int32, limit int) int {
	if !v.native {
		return refSelectAbove(x, n, t, idx, limit)
	}
	args := kernel.VectorArgs{P: pointers{ptr(x), ptr(idx)}, N: lengths{n, limit}, F: floats{t}}
	v.call(kernel.OpSelect, &args)
	return int(args.R[0])
}
