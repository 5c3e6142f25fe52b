package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"sandwich/microkernel/internal/kernel"
)

// BenchmarkVec measures each vector kernel on data that lives in L1 or L2, per instruction set, in
// elements per nanosecond and bytes read and written per second. The go set is the oracle.
func BenchmarkVec(b *testing.B) {
	const n = 4096
	rng := rand.New(rand.NewPCG(1, 1))
	buf := func(n int) []float32 {
		x := make([]float32, n)
		draw(rng, x, ordinary)
		return x
	}
	x, y, w := buf(n), buf(n), buf(n)
	big := buf(151936)
	const rows, dim = 64, 128
	scores, out, blk := buf(rows*KVBlock), buf(rows*dim), buf(rows*dim)
	valid, m, s, mb, sb := make([]int32, rows), buf(rows), buf(rows), buf(rows), buf(rows)
	for i := range valid {
		valid[i] = KVBlock
	}
	q := make([]byte, n/32*kernel.ActQ8Bytes)
	h, idx := make([]uint16, n), make([]int32, 64)
	l := KVLayout{HeadDim: dim, Elem: KVF16}
	lr := l.For(AttendDPBF16)
	block := make([]uint16, KVBlock*dim)
	cs := make([]float32, dim)
	for i := range dim / 2 { // a true rotation: repeated turns must not shrink the data into denormals
		sin, cos := math.Sincos(float64(i))
		cs[i], cs[dim/2+i] = float32(cos), float32(sin)
	}
	for _, c := range []struct {
		name        string
		elems, size int // elements per call, bytes per element
		run         func(v *Vec)
	}{
		{"RMSNorm", n, 8, func(v *Vec) { v.RMSNorm(p0(y), p0(x), p0(w), n, 1e-5) }},
		{"RMSNormHeads", n, 8, func(v *Vec) { v.RMSNormRows(p0(y), dim, p0(x), dim, n/dim, p0(w), dim, 1e-5) }},
		{"RoPEPairs", n, 8, func(v *Vec) { v.RoPE(p0(x), dim, n/dim, dim, p0(cs), false) }},
		{"RoPEHalves", n, 8, func(v *Vec) { v.RoPE(p0(x), dim, n/dim, dim, p0(cs), true) }},
		{"SwiGLU", n, 12, func(v *Vec) { v.GLU(SwiGLU, p0(y), p0(x), p0(w), n) }},
		{"GeGLU", n, 12, func(v *Vec) { v.GLU(GeGLU, p0(y), p0(x), p0(w), n) }},
		{"Add", n, 12, func(v *Vec) { v.Add(p0(y), p0(x), n) }},
		{"SoftmaxBlock", rows * KVBlock, 8, func(v *Vec) {
			v.SoftmaxBlock(p0(scores), KVBlock, rows, KVBlock, p0(valid),
				0.1, p0(m), p0(s))
		}},
		{"MergeBlock", rows * dim, 12, func(v *Vec) {
			v.mergeBlock(p0(out), dim, p0(m), p0(s), p0(blk), dim, p0(mb),
				p0(sb), rows, dim)
		}},
		{"FinishAttention", rows * dim, 8, func(v *Vec) {
			v.finishAttention(p0(blk), dim, p0(out), dim, p0(s),
				rows, dim)
		}},
		{"QuantizeRowQ8", n, 5, func(v *Vec) { v.quantizeRowQ8(p0(x), n, unsafe.Pointer(&q[0])) }},
		{"F32ToF16", n, 6, func(v *Vec) { v.f32ToF16(p0(h), p0(x), n) }},
		{"F16ToF32", n, 6, func(v *Vec) { v.f16ToF32(p0(y), p0(h), n) }},
		{"StoreK", dim, 6, func(v *Vec) { v.StoreK(l, unsafe.Pointer(&block[0]), 5, p0(x), 1, dim) }},
		{"StoreK16Tokens", 16 * dim, 6, func(v *Vec) { v.StoreK(l, unsafe.Pointer(&block[0]), 16, p0(x), 16, dim) }},
		{"StoreV", dim, 6, func(v *Vec) { v.StoreV(l, unsafe.Pointer(&block[0]), 5, p0(x), 1, dim) }},
		{"StoreV16Tokens", 16 * dim, 6, func(v *Vec) { v.StoreV(l, unsafe.Pointer(&block[0]), 16, p0(x), 16, dim) }},
		{"StoreKRounded", 16 * dim, 6, func(v *Vec) { v.StoreK(lr, unsafe.Pointer(&block[0]), 16, p0(x), 16, dim) }},
		{"StoreVRounded", 16 * dim, 6, func(v *Vec) { v.StoreV(lr, unsafe.Pointer(&block[0]), 16, p0(x), 16, dim) }},
		{"Argmax", len(big), 4, func(v *Vec) { v.Argmax(p0(big), len(big)) }},
		{"ExpSum", len(big), 4, func(v *Vec) { v.ExpSum(p0(big), len(big), 1, 5) }},
		{"SelectAbove", len(big), 4, func(v *Vec) { v.SelectAbove(p0(big), len(big), 3, p0(idx), len(idx)) }},
	} {
		for _, isa := range kernel.Host().ISAs() {
			b.Run(fmt.Sprintf("%s/%s", c.name, isa), func(b *testing.B) {
				v, err := New(isa)
				if err != nil {
					b.Fatal(err)
				}
				draw(rng, x, ordinary)
				draw(rng, scores, ordinary)
				b.SetBytes(int64(c.elems * c.size))
				for b.Loop() {
					c.run(v)
				}
				b.ReportMetric(float64(c.elems)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "elem/ns")
			})
		}
	}
}
