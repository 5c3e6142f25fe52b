package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/internal/kerneltest"
	"sandwich/microkernel/internal/ref"
	"sandwich/microkernel/qtype"
)

// TestKVQ8 stores vectors into int8 blocks: every element is the nearest multiple of its block's
// scale, as q8_0 rounds; no byte except those of the stored positions changes; and widening gives
// exactly the stored values.
func TestKVQ8(t *testing.T) {
	eachVec(t, func(t *testing.T, v *Vec, rng *rand.Rand) {
		for _, dim := range []int{32, 64, 96, 128, 256} {
			l := KVLayout{HeadDim: dim, Elem: KVQ8}
			if err := l.Check(); err != nil {
				t.Fatal(err)
			}
			if want := KVBlock * dim * 34 / 32; l.KBytes() != want || l.VBytes() != want {
				t.Fatalf("blocks of %d and %d bytes, want %d", l.KBytes(), l.VBytes(), want)
			}
			pos := rng.IntN(KVBlock)
			tokens, stride := 1+rng.IntN(KVBlock-pos), dim+rng.IntN(4)
			x := guardedF32(t, rng, (tokens-1)*stride+dim, ordinary)
			clear(x[:min(32, len(x))]) // a block of zeros
			pair := kerneltest.Guarded(t, l.KBytes()+l.VBytes())
			for i := range pair {
				pair[i] = 0x3c // a scale of about 1.06, so that what was never stored is a number too
			}
			k := unsafe.Pointer(&pair[0])
			vb := unsafe.Add(k, l.KBytes())
			v.StoreK(l, k, pos, p0(x), tokens, stride)
			v.StoreV(l, vb, pos, p0(x), tokens, stride)
			checkQ8Values(t, l, x, pos, tokens, stride, func(pos, d int) float32 { return l.getK(k, pos, d) })
			checkQ8Values(t, l, x, pos, tokens, stride, func(pos, d int) float32 { return l.getV(vb, pos, d) })
			if !v.native {
				continue
			}
			wide := guardedF32(t, rng, l.wideBytes()/4, ordinary)
			v.widenPair(l, unsafe.Pointer(&wide[0]), k)
			w := l.wide()
			for p := range KVBlock {
				for d := range dim {
					gotK, gotV := wide[w.kIndex(p, d)], wide[w.KBytes()/4+w.vIndex(p, d)]
					if gotK != l.getK(k, p, d) || gotV != l.getV(vb, p, d) {
						t.Fatalf("dim %d: element %d of position %d widens to %g and %g, want %g and %g", dim, d, p,
							gotK, gotV, l.getK(k, p, d), l.getV(vb, p, d))
					}
				}
			}
		}
	})
}

func checkQ8Values(t *testing.T, l KVLayout, x []float32, pos, tokens, stride int, get func(pos, d int) float32) {
	t.Helper()
	untouched := float32(0x3c) * qtype.FloatFromHalf(0x3c3c)
	for p := range KVBlock {
		for d0 := 0; d0 < l.HeadDim; d0 += kvScaleDims {
			if p < pos || p >= pos+tokens {
				for d := d0; d < d0+kvScaleDims; d++ {
					if got := get(p, d); got != untouched {
						t.Fatalf("position %d was not stored and its element %d is %g", p, d, got)
					}
				}
				continue
			}
			row := x[(p-pos)*stride+d0:][:kvScaleDims]
			amax := 0.0
			for _, e := range row {
				amax = max(amax, math.Abs(float64(e)))
			}
			scale := float64(qtype.FloatFromHalf(ref.HalfFromFloat(float32(amax / 127))))
			for i, e := range row {
				got := float64(get(p, d0+i))
				if q := got / scale; amax > 0 && (math.Abs(q-math.Round(q)) > 1e-6 || math.Abs(q) > 127 ||
					math.Abs(float64(e)*127/amax-q) > 0.50001) {
					t.Fatalf("position %d, element %d: %g became %g with a scale of %g", p, d0+i, e, got, scale)
				}
				if amax == 0 && got != 0 {
					t.Fatalf("position %d, element %d: zero became %g", p, d0+i, got)
				}
			}
		}
	}
}

// BenchmarkAttentionKV compares the cache types in decode at a long context: bytes are those of the
// cache, read once.
func BenchmarkAttentionKV(b *testing.B) {
	rng := rand.New(rand.NewPCG(5, 5))
	for _, group := range []int{1, 4} {
		for elem := range kvTypes {
			b.Run(fmt.Sprintf("decode4096/dim128/group%d/%s", group, elem), func(b *testing.B) {
				l := KVLayout{HeadDim: 128, Elem: elem}
				a, err := NewAttention(kernel.Host().Best(), l, AttentionForm{})
				if err != nil {
					b.Fatal(err)
				}
				heads := make([]*attentionCase, 64)
				heads[0] = newAttentionCase(b, rng, l, 1, group, 4095)
				for i := 1; i < len(heads); i++ {
					h := *heads[0]
					h.kv = append([]byte(nil), h.kv...)
					heads[i] = &h
				}
				scratch, out := make([]byte, a.ScratchBytes()), heads[0].out()
				b.SetBytes(int64(len(heads) * 64 * (l.KBytes() + l.VBytes())))
				for b.Loop() {
					for _, h := range heads {
						a.Run(h.job(0, 1, out), unsafe.Pointer(&scratch[0]))
					}
				}
			})
		}
	}
}
