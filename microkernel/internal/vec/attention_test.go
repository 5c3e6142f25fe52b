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

// attentionCase is a job over a cache of its own, whose unwritten positions hold NaN.
type attentionCase struct {
	layout             KVLayout
	tokens, group, pos int
	window             int
	both               bool // directions
	softcap            float32
	sinks              []float32
	q                  []float32
	kv                 []byte
	table              []int32
}

func newAttentionCase(t testing.TB, rng *rand.Rand, l KVLayout, tokens, group, pos int) *attentionCase {
	c := &attentionCase{layout: l, tokens: tokens, group: group, pos: pos}
	c.q = make([]float32, tokens*group*l.HeadDim+7*tokens)
	draw(rng, c.q, ordinary)
	blocks := (pos + tokens + KVBlock - 1) / KVBlock
	pair := l.KBytes() + l.VBytes()
	c.kv = make([]byte, (blocks+2)*pair)
	for i := range c.kv {
		c.kv[i] = 0xff
	}
	for _, id := range rng.Perm(blocks + 2)[:blocks] {
		c.table = append(c.table, int32(id))
	}
	v := Ref()
	if best, err := New(kernel.Host().Best()); err == nil {
		v = best
	}
	x := make([]float32, 2*l.HeadDim)
	for p := range pos + tokens {
		draw(rng, x, ordinary)
		k := unsafe.Pointer(&c.kv[int(c.table[p/KVBlock])*pair])
		v.StoreK(l, k, p%KVBlock, p0(x), 1, l.HeadDim)
		v.StoreV(l, unsafe.Add(k, l.KBytes()), p%KVBlock, p0(x[l.HeadDim:]), 1, l.HeadDim)
	}
	return c
}

// job runs rows [from, from+n) of the tokens into out.
func (c *attentionCase) job(from, n int, out []float32) *AttentionJob {
	row := c.group * c.layout.HeadDim
	job := &AttentionJob{
		Q: p0(c.q[from*(row+7):]), QStride: row + 7, Out: p0(out[from*row:]), OutStride: row,
		Tokens: n, Group: c.group, Pos: c.pos + from,
		KV: unsafe.Pointer(&c.kv[0]), Pitch: c.layout.KBytes() + c.layout.VBytes(), Table: p0(c.table),
		Scale:  float32(1 / math.Sqrt(float64(c.layout.HeadDim))),
		Window: c.window, Softcap: c.softcap,
	}
	if c.both {
		job.Until = c.pos + c.tokens
	}
	if c.sinks != nil {
		job.Sinks = &c.sinks[0]
	}
	return job
}

func (c *attentionCase) out() []float32 {
	return poison(make([]float32, c.tokens*c.group*c.layout.HeadDim))
}

func TestAttention(t *testing.T) {
	eachVec(t, func(t *testing.T, v *Vec, rng *rand.Rand) {
		for i, dim := range []int{1, 16, 20, 32, 48, 64, 80, 96, 128, 130, 256} {
			for _, elem := range []KVType{KVF16, KVF32, KVQ8} {
				if elem == KVQ8 && dim%kvScaleDims != 0 {
					continue
				}
				for _, dot := range dotsOn(v.ISA(), elem) {
					l := KVLayout{HeadDim: dim, Elem: elem}
					if i%2 == 0 {
						l = l.For(dot)
					}
					a, err := NewAttention(v.ISA(), l, AttentionForm{Dot: dot})
					if err != nil {
						t.Fatal(err)
					}
					if a.code == nil && i > 2 {
						continue // the oracle against itself: only that it runs
					}
					checkAttention(t, rng, a, 1+i%8)
				}
			}
		}
	})
}

// dotsOn are the dot products that kernels of an instruction set have on this host for a type of
// cache.
func dotsOn(isa kernel.ISA, elem KVType) (dots []AttentionDot) {
	for _, d := range AttentionDots() {
		if d.On(isa, kernel.Host()) && d.Reads(elem) == nil {
			dots = append(dots, d)
		}
	}
	return dots
}

// checkAttention compares jobs of several sizes with the oracle.
func checkAttention(t *testing.T, rng *rand.Rand, a *Attention, group int) {
	t.Helper()
	for _, size := range [][3]int{{1, 1 + rng.IntN(16), rng.IntN(300)}, {1 + rng.IntN(24), group, rng.IntN(200)},
		{3, 1, 62}, {1, 1, 0}, {1, 8, 31}, {2, 1, 32}} {
		c := newAttentionCase(t, rng, a.layout, size[0], size[1], size[2])
		scratch := kerneltest.Guarded(t, a.ScratchBytes())
		for i := range scratch {
			scratch[i] = 0xff
		}
		got, want := c.out(), c.out()
		a.Run(c.job(0, c.tokens, got), unsafe.Pointer(&scratch[0]))
		refAttention(a.layout, a.form.Dot, c.job(0, c.tokens, want))
		wantSame(t, fmt.Sprintf("%v by %s: tokens, group, pos %v", a.layout, a.form.Dot, size), got, want)
	}
}

// TestScoresThatOverflow checks that a row whose scores overflow float32 in any block gives only
// NaN, and that the other rows keep their bits, in generated code as in the oracle.
func TestScoresThatOverflow(t *testing.T) {
	eachVec(t, func(t *testing.T, v *Vec, rng *rand.Rand) {
		for _, elem := range []KVType{KVF16, KVF32, KVQ8} {
			dots := dotsOn(v.ISA(), elem)
			a, err := NewAttention(v.ISA(), KVLayout{HeadDim: 64, Elem: elem},
				AttentionForm{Dot: dots[rng.IntN(len(dots))]})
			if err != nil {
				t.Fatal(err)
			}
			for _, sign := range []float32{1, -1} {
				c := newAttentionCase(t, rng, a.layout, 5, 3, 190)
				sound := c.out()
				refAttention(a.layout, a.form.Dot, c.job(0, c.tokens, sound))
				row := 2*(c.group*64+7) + 64 // token 2, query head 1
				for d := range 64 {
					c.q[row+d] = sign * 3e38
				}
				got, want := c.out(), c.out()
				scratch := make([]byte, a.ScratchBytes())
				a.Run(c.job(0, c.tokens, got), unsafe.Pointer(&scratch[0]))
				refAttention(a.layout, a.form.Dot, c.job(0, c.tokens, want))
				wantSame(t, elem.String()+" by "+a.form.Dot.String(), got, want)
				for i := range got {
					if hit := i/64 == 2*c.group+1; hit != (got[i] != got[i]) || !hit && !same(got[i], sound[i]) {
						t.Fatalf("%s: element %d is %g, in a sound job %g", elem, i, got[i], sound[i])
					}
				}
			}
		}
	})
}

// TestAttentionChunks checks that the output of a token has the same bits for every division of a
// prompt into chunks.
func TestAttentionChunks(t *testing.T) {
	eachVec(t, func(t *testing.T, v *Vec, rng *rand.Rand) {
		for _, elem := range []KVType{KVF16, KVQ8} {
			for _, dot := range dotsOn(v.ISA(), elem) {
				a, err := NewAttention(v.ISA(), KVLayout{HeadDim: 64, Elem: elem}.For(dot), AttentionForm{Dot: dot})
				if err != nil {
					t.Fatal(err)
				}
				checkChunks(t, rng, a)
			}
		}
	})
}

func checkChunks(t *testing.T, rng *rand.Rand, a *Attention) {
	t.Helper()
	tokens := 150
	if a.code == nil {
		tokens = 20 // the oracle is slow
	}
	c := newAttentionCase(t, rng, a.layout, tokens, 3, 17)
	scratch := make([]byte, a.ScratchBytes())
	whole := c.out()
	a.Run(c.job(0, c.tokens, whole), unsafe.Pointer(&scratch[0]))
	for _, chunk := range []int{1, 7, 64} {
		pieces := c.out()
		for from := 0; from < c.tokens; from += chunk {
			a.Run(c.job(from, min(chunk, c.tokens-from), pieces), unsafe.Pointer(&scratch[0]))
		}
		wantSame(t, fmt.Sprintf("%v by %s, chunks of %d", a.layout, a.form.Dot, chunk), pieces, whole)
	}
}

// TestAttentionIsTheChain checks that the fused kernel has the bits of score GEMM, SoftmaxBlock,
// value GEMM, mergeBlock and finishAttention on the same blocks, so that a runtime may use either.
func TestAttentionIsTheChain(t *testing.T) {
	eachVec(t, func(t *testing.T, v *Vec, rng *rand.Rand) {
		l := KVLayout{HeadDim: 96, Elem: KVF16}
		a, err := NewAttention(v.ISA(), l, AttentionForm{})
		if err != nil {
			t.Fatal(err)
		}
		spec := kernel.Spec{ISA: v.ISA(), B: qtype.F16, MR: 2, NR: 2 * qtype.PanelWidth, KU: 1}
		c := newAttentionCase(t, rng, l, 20, 2, 130)
		got, want := c.out(), c.out()
		scratch := make([]byte, a.ScratchBytes())
		a.Run(c.job(0, c.tokens, got), unsafe.Pointer(&scratch[0]))
		gemm := func(a *float32, lda int, b unsafe.Pointer, panel int, out *float32, ldc, rows, n, k int) {
			for from := 0; from < n; from += spec.NR {
				ref.RunRef(spec, &kernel.GemmArgs{A: ptr(a), AStride: 4 * lda,
					B: unsafe.Add(b, from/qtype.PanelWidth*panel), BStride: panel,
					C: ptr(at(out, from)), CStride: 4 * ldc, M: rows, N: min(spec.NR, n-from), K1: k})
			}
		}
		job := c.job(0, c.tokens, want)
		rows := c.group
		p, block := make([]float32, rows*KVBlock), make([]float32, rows*l.HeadDim)
		o, m, s := make([]float32, rows*l.HeadDim), make([]float32, rows), make([]float32, rows)
		mb, sb, valid := make([]float32, rows), make([]float32, rows), make([]int32, rows)
		for token := range c.tokens {
			for r := range m {
				m[r] = negInf
			}
			for b, sees := 0, c.pos+token+1; b*KVBlock < sees; b++ {
				k := unsafe.Add(job.KV, int(c.table[b])*job.Pitch)
				n := min(sees-b*KVBlock, KVBlock)
				for r := range valid {
					valid[r] = int32(n)
				}
				gemm(at(job.Q, token*job.QStride), l.HeadDim, k, l.kPanelBytes(), p0(p), KVBlock, rows, n, l.HeadDim)
				v.SoftmaxBlock(p0(p), KVBlock, rows, KVBlock, p0(valid), job.Scale, p0(mb), p0(sb))
				gemm(p0(p), KVBlock, unsafe.Add(k, l.KBytes()), lanes*KVBlock*l.Elem.bytes(), p0(block), l.HeadDim,
					rows, l.HeadDim, n)
				v.mergeBlock(p0(o), l.HeadDim, p0(m), p0(s), p0(block), l.HeadDim, p0(mb), p0(sb), rows, l.HeadDim)
			}
			v.finishAttention(at(job.Out, token*job.OutStride), l.HeadDim, p0(o), l.HeadDim, p0(s), rows, l.HeadDim)
		}
		wantSame(t, "fused", got, want)
	})
}

// TestAttentionMeaning compares the oracle with a softmax attention in float64.
func TestAttentionMeaning(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	l := KVLayout{HeadDim: 24, Elem: KVF32}
	c := newAttentionCase(t, rng, l, 3, 2, 100)
	out := c.out()
	refAttention(l, AttendF32, c.job(0, c.tokens, out))
	pair := l.KBytes() + l.VBytes()
	for r := range c.tokens * c.group {
		q := c.q[r/c.group*(c.group*l.HeadDim+7)+r%c.group*l.HeadDim:][:l.HeadDim]
		want, z := make([]float64, l.HeadDim), 0.0
		for p := range c.pos + r/c.group + 1 {
			k := unsafe.Pointer(&c.kv[int(c.table[p/KVBlock])*pair])
			dot := 0.0
			for d, e := range q {
				dot += float64(e) * float64(l.get(k, l.kIndex(p%KVBlock, d)))
			}
			w := math.Exp(dot / math.Sqrt(float64(l.HeadDim)))
			z += w
			for d := range want {
				want[d] += w * float64(l.get(unsafe.Add(k, l.KBytes()), l.vIndex(p%KVBlock, d)))
			}
		}
		for d := range want {
			if got := float64(out[r*l.HeadDim+d]); math.Abs(got-want[d]/z) > 1e-6 {
				t.Fatalf("row %d dimension %d: %g, want %g", r, d, got, want[d]/z)
			}
		}
	}
}

// BenchmarkAttention measures decode and prefill. Decode is one token of `group` query heads with a
// long context and so many KV heads that the cache exceeds the CPU's caches. Prefill is the last
// chunk of a prompt of that length. The ceiling of decode is the memory bandwidth (MB/s here counts
// K and V once), that of prefill the FMA peak.
func BenchmarkAttention(b *testing.B) {
	rng := rand.New(rand.NewPCG(5, 5))
	for _, c := range []struct {
		name                             string
		dim, tokens, group, pos, kvHeads int
	}{
		{"decode4096/dim128/group1", 128, 1, 1, 4095, 64},
		{"decode4096/dim128/group4", 128, 1, 4, 4095, 64},
		{"decode4096/dim64/group8", 64, 1, 8, 4095, 128},
		{"decode512/dim64/group1", 64, 1, 1, 511, 12},
		{"prefill512/dim64/group1", 64, 512, 1, 0, 1},
		{"prefill512/dim128/group4", 128, 512, 4, 0, 1},
		{"prefill2048/dim128/group4", 128, 128, 4, 1920, 1},
		{"prefill8192/dim128/group4", 128, 64, 4, 8128, 1},
	} {
		for _, isa := range kernel.Host().ISAs() {
			if isa == kernel.Go {
				continue
			}
			b.Run(fmt.Sprintf("%s/%s", c.name, isa), func(b *testing.B) {
				l := KVLayout{HeadDim: c.dim, Elem: KVF16}
				a, err := NewAttention(isa, l, AttentionForm{})
				if err != nil {
					b.Fatal(err)
				}
				heads := make([]*attentionCase, c.kvHeads)
				heads[0] = newAttentionCase(b, rng, l, c.tokens, c.group, c.pos)
				for i := 1; i < c.kvHeads; i++ {
					h := *heads[0]
					h.kv = append([]byte(nil), h.kv...)
					heads[i] = &h
				}
				scratch, out := make([]byte, a.ScratchBytes()), heads[0].out()
				for b.Loop() {
					for _, h := range heads {
						a.Run(h.job(0, c.tokens, out), unsafe.Pointer(&scratch[0]))
					}
				}
				positions := 0
				for t := range c.tokens {
					positions += c.pos + t + 1
				}
				ns := float64(b.Elapsed().Nanoseconds()) / float64(b.N*c.kvHeads)
				b.ReportMetric(4*float64(positions*c.group*c.dim)/ns, "GFLOP/s")
				b.ReportMetric(float64((c.pos+c.tokens)*c.dim*4)/ns, "GB/s")
			})
		}
	}
}
