package vec

import (
	"math"
	"unsafe"

	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/internal/ref"
	"sandwich/microkernel/qtype"
)

// vecOf returns p[:n] as a slice.
func vecOf[T any](p *T, n int) []T { return unsafe.Slice(p, n) }

// at returns a pointer to p[i].
func at[T any](p *T, i int) *T { return (*T)(unsafe.Add(unsafe.Pointer(p), i*int(unsafe.Sizeof(*p)))) }

func refRMSNormRows(dst *float32, dstStride int, x *float32, xStride, rows int, weight *float32, n int, eps float32) {
	for r := 0; r < rows; r++ {
		refRMSNorm(vecOf(at(dst, r*dstStride), n), vecOf(at(x, r*xStride), n), vecOf(weight, n), eps)
	}
}

func refRMSNorm(dst, x, weight []float32, eps float32) {
	var l [lanes]float32
	for i, e := range x {
		l[i%lanes] = ref.FMA32(e, e, l[i%lanes])
	}
	mean := treeSum(&l) / float32(len(x))
	scale := 1 / sqrt32(mean+eps)
	for i, e := range x {
		dst[i] = float32(e*scale) * weight[i]
	}
}

func refLayerNorm(dst, x, weight, bias []float32, eps float32) {
	var l [lanes]float32
	for i, e := range x {
		l[i%lanes] += e
	}
	mean := treeSum(&l) / float32(len(x))
	l = [lanes]float32{}
	for i, e := range x {
		dst[i] = e - mean
		l[i%lanes] = ref.FMA32(dst[i], dst[i], l[i%lanes])
	}
	scale := 1 / sqrt32(treeSum(&l)/float32(len(x))+eps)
	for i, d := range dst {
		dst[i] = ref.FMA32(float32(d*scale), weight[i], bias[i])
	}
}

// sqrt32 returns the correctly rounded root: a float64 root has more than twice the bits of a
// float32.
func sqrt32(x float32) float32 { return float32(math.Sqrt(float64(x))) }

func refRoPE(x *float32, dim, nHeads, headStride int, cosSin *float32, neox bool) {
	half := dim / 2
	cs := vecOf(cosSin, dim)
	step, dist := 2, 1
	if neox {
		step, dist = 1, half
	}
	for h := 0; h < nHeads; h++ {
		head := vecOf(at(x, h*headStride), dim)
		for i := 0; i < half; i++ {
			a, b := head[i*step], head[i*step+dist]
			c, s := cs[i], cs[half+i]
			head[i*step] = ref.FMA32(a, c, -float32(b*s))
			head[i*step+dist] = ref.FMA32(a, s, float32(b*c))
		}
	}
}

func refAdd(dst, a *float32, n int) {
	d, s := vecOf(dst, n), vecOf(a, n)
	for i := range d {
		d[i] += s[i]
	}
}

func refSum(dst *float32, parts []*float32, n int) {
	d := vecOf(dst, n)
	for i := range d {
		s := *at(parts[0], i)
		for _, p := range parts[1:] {
			s += *at(p, i)
		}
		d[i] = s
	}
}

func refAddBias(dst *float32, stride, rows int, bias *float32, n int) {
	for r := 0; r < rows; r++ {
		refAdd(at(dst, r*stride), bias, n)
	}
}

func refAddScaled(dst, a *float32, s float32, n int) {
	d, x := vecOf(dst, n), vecOf(a, n)
	for i := range d {
		d[i] = ref.FMA32(x[i], s, d[i])
	}
}

func refScale(dst *float32, s float32, n int) {
	d := vecOf(dst, n)
	for i := range d {
		d[i] *= s
	}
}

func refF32ToF16(dst *uint16, src *float32, n int) {
	d, s := vecOf(dst, n), vecOf(src, n)
	for i := range d {
		d[i] = ref.HalfFromFloat(s[i])
	}
}

func refF16ToF32(dst *float32, src *uint16, n int) {
	d, s := vecOf(dst, n), vecOf(src, n)
	for i := range d {
		d[i] = qtype.FloatFromHalf(s[i])
	}
}

func refQuantizeRowQ8(x *float32, k int, row unsafe.Pointer) {
	xs := vecOf(x, k)
	for i := range k / kernel.ActQ8Block {
		b := kernel.ActQ8At(row, i)
		b.Scale = quantizeBlockQ8(xs[i*kernel.ActQ8Block:][:kernel.ActQ8Block], b.Q[:])
		b.SetSums(b.Scale)
	}
}

func refQuantizeRowQ8Superblock(x *float32, k int, row unsafe.Pointer) {
	xs := vecOf(x, k)
	var q [kernel.ActQ8Group]int8
	for g := 0; g < k; g += len(q) {
		scale := quantizeBlockQ8(xs[g:][:len(q)], q[:])
		for i := 0; i < len(q); i += kernel.ActQ8Block {
			b := kernel.ActQ8At(row, (g+i)/kernel.ActQ8Block)
			b.Scale = scale
			copy(b.Q[:], q[i:])
			b.SetSums(1)
		}
	}
}

// refQuantizeRowQ8K defines Vec.quantizeRowQ8K.
func refQuantizeRowQ8K(x *float32, k int, row unsafe.Pointer) {
	xs := vecOf(x, k)
	for g := 0; g < k; g += kernel.ActQ8Group {
		b := kernel.ActQ8KAt(row, g/kernel.ActQ8Group)
		*b = kernel.ActQ8K{}
		b.Scale = quantizeBlockQ8(xs[g:][:len(b.Q)], b.Q[:])
		b.SetSums()
	}
}

func quantizeBlockQ8(x []float32, q []int8) (scale float32) {
	// The bits of |x| compare as integers in the order of the values, with NaN on top.
	var top uint32
	for _, e := range x {
		top = max(top, math.Float32bits(e)&^(1<<31))
	}
	amax := math.Float32frombits(top)
	if top >= arith.InfBits || amax < arith.TinyQ8 {
		clear(q)
		if top >= arith.InfBits {
			return math.Float32frombits(arith.NaNBits)
		}
		return 0
	}
	inv := 127 / amax
	for i, e := range x {
		q[i] = int8(math.RoundToEven(float64(float32(e * inv))))
	}
	return amax / 127
}

// refRoundRowBF16 defines Vec.roundRowBF16 and Vec.roundQueryBF16.
func refRoundRowBF16(op kernel.VectorOp, x *float32, k int, row unsafe.Pointer) {
	out := unsafe.Slice((*uint16)(row), k+k%2)
	var smallest float32
	if op == kernel.OpRoundQuery {
		smallest, _ = kernel.TDPBF16.Least()
	}
	for i, v := range vecOf(x, k) {
		out[i] = ref.RoundBF16(above(smallest, v))
	}
	if k%2 == 1 {
		out[k] = 0
	}
}

// above returns x, or the zero of its sign if its magnitude is below minimum.
func above(minimum, x float32) float32 {
	if float32(math.Abs(float64(x))) < minimum {
		return float32(math.Copysign(0, float64(x)))
	}
	return x
}
