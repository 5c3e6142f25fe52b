package vec

import (
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/ref"
)

func refSoftmaxBlock(scores *float32, stride, rows, width int, valid *int32, scale float32, max, sum *float32) {
	nv, ms, ss := vecOf(valid, rows), vecOf(max, rows), vecOf(sum, rows)
	for r := 0; r < rows; r++ {
		row := vecOf(at(scores, r*stride), width)
		n := int(nv[r])
		m := refMax(at(scores, r*stride), n)
		if n > 0 {
			m = maxLane(m, arith.LowestScore)
		}
		m = float32(m * scale)
		var l [lanes]float32
		for i := range row[:n] {
			p := exp32(float32(row[i]*scale) - m)
			row[i] = p
			l[i%lanes] += p
		}
		clear(row[n:])
		ms[r], ss[r] = m, treeSum(&l)
	}
}

func refMergeBlock(o *float32, oStride int, m, s *float32, ob *float32, obStride int, mb, sb *float32, rows,
	headDim int) {
	ms, ss, mbs, sbs := vecOf(m, rows), vecOf(s, rows), vecOf(mb, rows), vecOf(sb, rows)
	for r := 0; r < rows; r++ {
		if mbs[r] == negInf {
			continue
		}
		out, blk := vecOf(at(o, r*oStride), headDim), vecOf(at(ob, r*obStride), headDim)
		if ms[r] == negInf {
			ms[r], ss[r] = mbs[r], sbs[r]
			for i, e := range blk {
				out[i] = e + 0 // -0 becomes +0: masked zeros may or may not have been added to a block
			}
			continue
		}
		top := maxLane(ms[r], mbs[r])
		a, b := exp32(ms[r]-top), exp32(mbs[r]-top)
		ms[r], ss[r] = top, ref.FMA32(ss[r], a, float32(sbs[r]*b))
		for i, e := range blk {
			out[i] = ref.FMA32(out[i], a, float32((e+0)*b))
		}
	}
}

func refFinishAttention(dst *float32, dstStride int, o *float32, oStride int, s *float32, rows, headDim int) {
	for r, sum := range vecOf(s, rows) {
		d, x := vecOf(at(dst, r*dstStride), headDim), vecOf(at(o, r*oStride), headDim)
		inv := 1 / sum
		for i := range d {
			d[i] = x[i] * inv
		}
	}
}

func refMax(x *float32, n int) float32 {
	var l [lanes]float32
	for i := range l {
		l[i] = negInf
	}
	for i, e := range vecOf(x, n) {
		l[i%lanes] = maxLane(l[i%lanes], e)
	}
	return treeMax(&l)
}

func refArgmax(x *float32, n int) int {
	best, at := negInf, 0
	for i, e := range vecOf(x, n) {
		if e > best {
			best, at = e, i
		}
	}
	return at
}

func refExpSum(x *float32, n int, scale, max float32) float32 {
	var l [lanes]float32
	m := float32(max * scale)
	for i, e := range vecOf(x, n) {
		l[i%lanes] += exp32(float32(e*scale) - m)
	}
	return treeSum(&l)
}

func refSelectAbove(x *float32, n int, t float32, idx *int32, limit int) int {
	out, k := vecOf(idx, limit), 0
	for i, e := range vecOf(x, n) {
		if e >= t {
			if k < limit {
				out[k] = int32(i)
			}
			k++
		}
	}
	return k
}
