package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"sandwich/microkernel/internal/kerneltest"
)

// eachForm runs f for jobs with windows, caps, sinks and both directions, alone and together.
func eachForm(t *testing.T, f func(t *testing.T, v *Vec, a *Attention, c *attentionCase, rng *rand.Rand)) {
	eachVec(t, func(t *testing.T, v *Vec, rng *rand.Rand) {
		for i, l := range []KVLayout{{64, KVF16, false}, {24, KVF32, false}, {96, KVQ8, false}, {48, KVF16, false},
			{256, KVF32, false}} {
			for bits := 1; bits < 16; bits++ {
				dots := dotsOn(v.ISA(), l.Elem)
				l := l.For(dots[(i+bits)%len(dots)])
				a, err := NewAttention(v.ISA(), l, AttentionForm{Window: bits&1 > 0, Softcap: bits&2 > 0,
					Dot: dots[(i+bits)%len(dots)]})
				if err != nil {
					t.Fatal(err)
				}
				if a.code == nil && i > 0 {
					continue // the oracle is slow
				}
				for _, size := range [][3]int{{1, 1 + rng.IntN(16), rng.IntN(300)}, {1 + rng.IntN(24), 1 + rng.IntN(5),
					rng.IntN(200)}, {3, 1, 62}, {1, 1, 0}, {5, 2, 400}} {
					c := newAttentionCase(t, rng, l, size[0], size[1], size[2])
					if a.form.Window {
						c.window = []int{1, 20, 63, 64, 65, 128, 300}[rng.IntN(7)]
					}
					if a.form.Softcap {
						c.softcap = 5
					}
					if bits&4 > 0 {
						c.sinks = make([]float32, c.group)
						draw(rng, c.sinks, ordinary)
					}
					c.both = bits&8 > 0
					f(t, v, a, c, rng)
				}
			}
		}
	})
}

func (c *attentionCase) String() string {
	return fmt.Sprintf("%v tokens %d group %d pos %d window %d cap %g sinks %v both %v", c.layout, c.tokens, c.group,
		c.pos,
		c.window, c.softcap, c.sinks, c.both)
}

// TestAttentionForms checks that windows, caps and sinks have the bits of the oracle, in chunks and
// in ranges, and that positions that no row attends to are not read.
func TestAttentionForms(t *testing.T) {
	eachForm(t, func(t *testing.T, v *Vec, a *Attention, c *attentionCase, rng *rand.Rand) {
		scratch := kerneltest.Guarded(t, a.ScratchBytes())
		for i := range scratch {
			scratch[i] = 0xff
		}
		got, want := c.out(), c.out()
		refAttention(a.layout, a.form.Dot, c.job(0, c.tokens, want))
		first, _ := c.job(0, c.tokens, want).Blocks()
		for i := range first {
			c.table[i] = math.MaxInt32 / 2 // no memory is there
		}
		a.Run(c.job(0, c.tokens, got), unsafe.Pointer(&scratch[0]))
		wantSame(t, a.form.Dot.String()+": "+c.String(), got, want)
		got = c.out()
		for from := 0; from < c.tokens; from += 7 {
			a.Run(c.job(from, min(7, c.tokens-from), got), unsafe.Pointer(&scratch[0]))
		}
		wantSame(t, "chunks of 7: "+c.String(), got, want)
		got = c.out()
		runRanges(t, rng, a, c.job(0, c.tokens, got), scratch)
		wantSame(t, "ranges: "+c.String(), got, want)
	})
}

// TestAttentionFormsMeaning compares the oracle with the formulas in float64.
func TestAttentionFormsMeaning(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	l := KVLayout{HeadDim: 20, Elem: KVF32}
	for range 20 {
		c := newAttentionCase(t, rng, l, 1+rng.IntN(5), 2, rng.IntN(150))
		c.both = rng.IntN(2) > 0
		c.window, c.softcap, c.sinks = rng.IntN(90), []float32{0, 2}[rng.IntN(2)], []float32{0.5, -1}
		out := c.out()
		refAttention(l, AttendF32, c.job(0, c.tokens, out))
		for r := range c.tokens * c.group {
			want := c.meaning(r)
			for d, w := range want {
				if g := float64(out[r*l.HeadDim+d]); !(math.Abs(g-w) < 1e-5) {
					t.Fatalf("%v: row %d dimension %d is %g, want %g", c, r, d, g, w)
				}
			}
		}
	}
}

// meaning is the attention of a row in float64.
func (c *attentionCase) meaning(r int) []float64 {
	l, token, head := c.layout, r/c.group, r%c.group
	job := c.job(0, c.tokens, c.out())
	sum, out := math.Exp(float64(c.sinks[head])), make([]float64, l.HeadDim)
	for p := range c.pos + c.tokens {
		away := c.pos + token - p
		if !c.both && (away < 0 || c.window > 0 && away >= c.window) ||
			c.both && c.window > 0 && max(away, -away) > c.window/2 {
			continue
		}
		k := unsafe.Add(job.KV, int(c.table[p/KVBlock])*job.Pitch)
		score := 0.0
		for d := range l.HeadDim {
			score += float64(c.q[token*job.QStride+head*l.HeadDim+d]) * float64(l.getK(k, p%KVBlock, d))
		}
		if score *= float64(job.Scale); c.softcap > 0 {
			score = float64(c.softcap) * math.Tanh(score/float64(c.softcap))
		}
		e := math.Exp(score)
		sum += e
		for d := range out {
			out[d] += e * float64(l.getV(unsafe.Add(k, l.KBytes()), p%KVBlock, d))
		}
	}
	for d := range out {
		out[d] /= sum
	}
	return out
}
