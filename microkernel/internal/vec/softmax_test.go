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
)

func TestSoftmaxBlock(t *testing.T) {
	eachVec(t, func(t *testing.T, v *Vec, rng *rand.Rand) {
		for _, width := range vecLengths {
			for d := ordinary; d <= specials; d++ {
				const rows = 5
				stride := width + rng.IntN(5)
				got := guardedF32(t, rng, (rows-1)*stride+width, d)
				valid := guarded[int32](t, rows)
				for i := range valid {
					valid[i] = int32(rng.IntN(width + 1))
				}
				valid[0], valid[1] = int32(width), 0
				want := append([]float32(nil), got...)
				m, mw := poison(guarded[float32](t, rows)), make([]float32, rows)
				s, sw := poison(guarded[float32](t, rows)), make([]float32, rows)
				v.SoftmaxBlock(p0(got), stride, rows, width, p0(valid), 0.125, p0(m), p0(s))
				refSoftmaxBlock(p0(want), stride, rows, width, p0(valid), 0.125, p0(mw), p0(sw))
				what := fmt.Sprintf("width=%d drawing %d ", width, d)
				wantSame(t, what+"max", m, mw)
				wantSame(t, what+"p", got, want)
				wantSame(t, what+"sum", s, sw)
				if m[1] != negInf || s[1] != 0 {
					t.Fatalf("%sempty row has max %g and sum %g", what, m[1], s[1])
				}
			}
		}
	})
}

func TestMergeAndFinish(t *testing.T) {
	eachVec(t, func(t *testing.T, v *Vec, rng *rand.Rand) {
		for _, dim := range vecLengths {
			for d := ordinary; d <= specials; d++ {
				const rows = 7
				oStride, bStride := dim+rng.IntN(4), dim+rng.IntN(4)
				o, m, s := guardedF32(t, rng, (rows-1)*oStride+dim, d), guardedF32(t, rng, rows, d), guardedF32(t,
					rng, rows, d)
				ob, mb, sb := guardedF32(t, rng, (rows-1)*bStride+dim, d), guardedF32(t, rng, rows, d), guardedF32(t,
					rng, rows, d)
				m[0], mb[1], s[2] = negInf, negInf, 0
				m[3], mb[3] = negInf, negInf
				ow, mw, sw := append([]float32(nil), o...), append([]float32(nil), m...), append([]float32(nil), s...)
				v.mergeBlock(p0(o), oStride, p0(m), p0(s), p0(ob), bStride, p0(mb), p0(sb), rows, dim)
				refMergeBlock(p0(ow), oStride, p0(mw), p0(sw), p0(ob), bStride, p0(mb), p0(sb), rows, dim)
				what := fmt.Sprintf("dim=%d drawing %d ", dim, d)
				wantSame(t, what+"max", m, mw)
				wantSame(t, what+"sum", s, sw)
				wantSame(t, what+"output", o, ow)
				s[4] = 0
				got, want := poison(guarded[float32](t, len(o))), poison(make([]float32, len(o)))
				v.finishAttention(p0(got), oStride, p0(o), oStride, p0(s), rows, dim)
				refFinishAttention(p0(want), oStride, p0(o), oStride, p0(s), rows, dim)
				wantSame(t, what+"finished", got, want)
			}
		}
	})
}

// TestBlockwiseSoftmaxIsSoftmax merges blocks and compares with a softmax in float64.
func TestBlockwiseSoftmaxIsSoftmax(t *testing.T) {
	eachVec(t, func(t *testing.T, v *Vec, rng *rand.Rand) {
		const dim, n = 24, 200
		score, val := make([]float32, n), make([]float32, n*dim)
		for i := range score {
			score[i] = float32(8 * rng.NormFloat64())
		}
		draw(rng, val, ordinary)
		const scale = 0.5
		want, z := make([]float64, dim), 0.0
		for i, s := range score {
			e := math.Exp(scale * float64(s))
			z += e
			for d := range dim {
				want[d] += e * float64(val[i*dim+d])
			}
		}
		o, m, s := poison(make([]float32, dim)), []float32{negInf}, []float32{float32(math.NaN())}
		for b := 0; b < n; b += KVBlock {
			valid := []int32{int32(min(KVBlock, n-b))}
			p := make([]float32, KVBlock)
			copy(p, score[b:])
			mb, sb, ob := make([]float32, 1), make([]float32, 1), make([]float32, dim)
			v.SoftmaxBlock(p0(p), KVBlock, 1, KVBlock, p0(valid), scale, p0(mb), p0(sb))
			for i := range int(valid[0]) {
				v.AddScaled(p0(ob), p0(val[(b+i)*dim:]), p[i], dim)
			}
			v.mergeBlock(p0(o), dim, p0(m), p0(s), p0(ob), dim, p0(mb), p0(sb), 1, dim)
		}
		v.finishAttention(p0(o), dim, p0(o), dim, p0(s), 1, dim)
		for d := range dim {
			if math.Abs(float64(o[d])-want[d]/z) > 2e-6 {
				t.Errorf("dimension %d is %g, want %g", d, o[d], want[d]/z)
			}
		}
	})
}

func TestSampling(t *testing.T) {
	eachVec(t, func(t *testing.T, v *Vec, rng *rand.Rand) {
		for _, n := range append(vecLengths, 32003) {
			for d := ordinary; d <= specials; d++ {
				x := guardedF32(t, rng, n, d)
				if rng.IntN(3) == 0 { // ties
					for i := range x {
						x[i] = float32(rng.IntN(4))
					}
				}
				what := fmt.Sprintf("n=%d drawing %d ", n, d)
				top := v.Max(p0(x), n)
				wantSame(t, what+"max", []float32{top}, []float32{refMax(p0(x), n)})
				if got, want := v.Argmax(p0(x), n), refArgmax(p0(x), n); got != want {
					t.Fatalf("%sargmax %d (%g), want %d (%g)", what, got, x[got], want, x[want])
				}
				wantSame(t, what+"exp sum", []float32{v.ExpSum(p0(x), n, 0.7, top)},
					[]float32{refExpSum(p0(x), n, 0.7, top)})
				limit := rng.IntN(20)
				threshold := x[rng.IntN(n)]
				idx, idxw := guarded[int32](t, limit), make([]int32, limit)
				k, kw := v.SelectAbove(p0(x), n, threshold, p0(idx), limit), refSelectAbove(p0(x), n, threshold,
					p0(idxw), limit)
				if k != kw {
					t.Fatalf("%s%d above %g, want %d", what, k, threshold, kw)
				}
				wantEqual(t, what+"indices", idx[:min(k, limit)], idxw[:min(k, limit)])
			}
		}
		all := []float32{float32(math.NaN()), negInf, float32(math.NaN())}
		if got := v.Argmax(p0(all), len(all)); got != 0 {
			t.Errorf("argmax of nothing is %d", got)
		}
	})
}

func TestKVLayout(t *testing.T) {
	eachVec(t, func(t *testing.T, v *Vec, rng *rand.Rand) {
		for _, l := range []KVLayout{{Elem: KVF16}, {Elem: KVF32}, {Elem: KVF16, Rounded: true}} {
			for i, dim := range []int{1, 8, 20, 32, 64, 80, 96, 128, 130} {
				l.HeadDim = dim
				if err := l.Check(); err != nil {
					t.Fatal(err)
				}
				pos := rng.IntN(KVBlock) * (i % 2) // whole panels in every other case
				tokens, stride := 1+rng.IntN(KVBlock-pos), dim+rng.IntN(4)
				if i%2 == 0 {
					tokens = KVBlock - rng.IntN(lanes)
				}
				x := guardedF32(t, rng, (tokens-1)*stride+dim, specials)
				k, kw := kerneltest.Guarded(t, l.KBytes()), make([]byte, l.KBytes())
				vb, vw := kerneltest.Guarded(t, l.VBytes()), make([]byte, l.VBytes())
				for _, b := range [][]byte{k, kw, vb, vw} {
					for i := range b {
						b[i] = 0xA5
					}
				}
				v.StoreK(l, unsafe.Pointer(&k[0]), pos, p0(x), tokens, stride)
				Ref().StoreK(l, unsafe.Pointer(&kw[0]), pos, p0(x), tokens, stride)
				v.StoreV(l, unsafe.Pointer(&vb[0]), pos, p0(x), tokens, stride)
				Ref().StoreV(l, unsafe.Pointer(&vw[0]), pos, p0(x), tokens, stride)
				wantEqual(t, "K block", k, kw)
				wantEqual(t, "V block", vb, vw)
				last := dim - 1
				if l.Rounded {
					continue
				}
				if l.Elem == KVF32 {
					got := *(*float32)(unsafe.Pointer(&k[4*l.kIndex(pos+tokens-1, last)]))
					if !same(got, x[(tokens-1)*stride+last]) {
						t.Fatalf("last K element is %g", got)
					}
				} else {
					h := *(*uint16)(unsafe.Pointer(&vb[2*l.vIndex(pos+tokens-1, last)]))
					if h != ref.HalfFromFloat(x[(tokens-1)*stride+last]) {
						t.Fatalf("last V element is %#04x", h)
					}
				}
			}
		}
	})
	for _, bad := range []KVLayout{{HeadDim: 0}, {HeadDim: 1 << 30}, {HeadDim: 64, Elem: 9},
		{HeadDim: 48, Elem: KVQ8}} {
		if bad.Check() == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

// TestNewRefuses checks that the error for an instruction set that the host lacks names it.
func TestNewRefuses(t *testing.T) {
	for _, isa := range []kernel.ISA{kernel.AVX2, kernel.AVX512, kernel.NEON, kernel.ISA(200)} {
		if kernel.Host().Supports(isa) {
			continue
		}
		if v, err := New(isa); err == nil {
			t.Errorf("New(%s) = %v on a host with %s", isa, v.ISA(), kernel.Host())
		}
	}
}

// TestVecAllocatesNothing covers a call with many arguments and the one with the result.
func TestVecAllocatesNothing(t *testing.T) {
	eachVec(t, func(t *testing.T, v *Vec, rng *rand.Rand) {
		x, valid, m := make([]float32, 64), []int32{60}, make([]float32, 1)
		if n := testing.AllocsPerRun(100, func() {
			v.SoftmaxBlock(p0(x), 64, 1, 64, p0(valid), 1, p0(m), p0(m))
			v.Argmax(p0(x), 64)
			v.RMSNorm(p0(x), p0(x), p0(x), 64, 1)
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}
