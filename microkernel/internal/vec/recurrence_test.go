package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"sandwich/microkernel/internal/kernel"
)

func TestConvRows(t *testing.T) {
	eachVec(t, func(t *testing.T, v *Vec, rng *rand.Rand) {
		for _, n := range []int{1, 7, 15, 16, 17, 33, 64, 100} {
			for taps := 1; taps <= 5; taps++ {
				for _, act := range []ConvAct{ConvSiLU, ConvGate} {
					checkConv(t, v, rng, act, taps, n, ordinary)
					checkConv(t, v, rng, act, taps, n, specials)
				}
			}
		}
	})
}

// checkConv runs a convolution forwards into other memory, and backwards over its own input.
func checkConv(t *testing.T, v *Vec, rng *rand.Rand, act ConvAct, taps, n int, d drawing) {
	t.Helper()
	const rows = 9
	stride, wStride, gateStride := n+rng.IntN(5), n+rng.IntN(3), n+rng.IntN(4)
	x := guardedF32(t, rng, (rows+taps-2)*stride+n, d)
	w := guardedF32(t, rng, (taps-1)*wStride+n, ordinary)
	gate := guardedF32(t, rng, (rows-1)*gateStride+n, ordinary)
	c := Conv{Act: act, Taps: taps, TapStride: stride, W: p0(w), WStride: wStride, Gate: p0(gate),
		GateStride: gateStride}
	got, want := poison(guarded[float32](t, (rows-1)*stride+n)), poison(make([]float32, (rows-1)*stride+n))
	v.ConvRows(&c, p0(got), stride, p0(x), stride, rows, n)
	refConvRows(&c, p0(want), stride, p0(x), stride, rows, n)
	what := fmt.Sprintf("act %d, %d taps of %d", act, taps, n)
	wantSame(t, what, got, want)
	if s := float64(want[0]); d == ordinary && act == ConvGate {
		sum := 0.0
		for i := range taps {
			sum += float64(w[i*wStride]) * float64(x[i*stride])
		}
		if math.Abs(s-sum*float64(gate[0])) > 1e-5 {
			t.Fatalf("%s: %g, not %g", what, s, sum*float64(gate[0]))
		}
	}
	back := c // in place, the last row first
	back.Gate, back.GateStride = at(c.Gate, (rows-1)*gateStride), -gateStride
	v.ConvRows(&back, at(p0(x), (rows+taps-2)*stride), -stride, at(p0(x), (rows-1)*stride), -stride, rows, n)
	for r := range rows {
		wantSame(t, what+" in place", x[(r+taps-1)*stride:][:n], want[r*stride:][:n])
	}
}

func TestMulAndL2Norm(t *testing.T) {
	eachVec(t, func(t *testing.T, v *Vec, rng *rand.Rand) {
		ref := Ref()
		for _, n := range vecLengths {
			for d := ordinary; d <= specials; d++ {
				const rows = 3
				stride := n + rng.IntN(5)
				x, y := guardedF32(t, rng, (rows-1)*stride+n, d), guardedF32(t, rng, (rows-1)*stride+n, d)
				want := slices.Clone(x)
				v.MulRows(p0(x), stride, p0(y), stride, rows, n)
				ref.MulRows(p0(want), stride, p0(y), stride, rows, n)
				wantSame(t, fmt.Sprintf("product of %d, drawing %d", n, d), x, want)
				want = slices.Clone(y)
				v.L2NormRows(p0(y), stride, rows, n, 0.5, 1e-6)
				ref.L2NormRows(p0(want), stride, rows, n, 0.5, 1e-6)
				wantSame(t, fmt.Sprintf("norm of %d, drawing %d", n, d), y, want)
			}
		}
		zero := guarded[float32](t, 20)
		v.L2NormRows(p0(zero), 20, 1, 20, 1, 1e-6)
		if zero[0] != 0 {
			t.Errorf("a row of zeros becomes %g", zero[0])
		}
	})
}

// delta is a random problem of the delta rule whose operands end at guard pages.
type delta struct {
	Delta
	state, q, k, v, out, decay, beta []float32
}

func newDelta(t *testing.T, rng *rand.Rand, dim, columns, rows int, d drawing) *delta {
	stride, outStride, gateStride := max(dim, columns)+rng.IntN(5), columns+rng.IntN(3), 1+rng.IntN(3)
	p := &delta{
		q: guardedF32(t, rng, (rows-1)*stride+dim, d), k: guardedF32(t, rng, (rows-1)*stride+dim, d),
		v: guardedF32(t, rng, (rows-1)*stride+columns, d), out: poison(guarded[float32](t, (rows-1)*outStride+columns)),
		decay: guardedF32(t, rng, (rows-1)*gateStride+1, ordinary), beta: guardedF32(t, rng, (rows-1)*gateStride+1,
			ordinary),
		state: guardedF32(t, rng, (columns+lanes-1)/lanes*dim*lanes, d),
	}
	for i := range p.decay {
		p.decay[i], p.beta[i] = float32(math.Exp(-math.Abs(float64(p.decay[i])))), p.beta[i]/2
	}
	norm := Ref()
	if d == ordinary {
		for r := range rows {
			norm.L2NormRows(at(p0(p.q), r*stride), stride, 1, dim, 1, 1e-6)
			norm.L2NormRows(at(p0(p.k), r*stride), stride, 1, dim, 1, 1e-6)
		}
	}
	p.Delta = Delta{Dim: dim, Columns: columns, Rows: rows, Q: p0(p.q), K: p0(p.k), V: p0(p.v), Stride: stride,
		Out: p0(p.out), OutStride: outStride, Decay: p0(p.decay), Beta: p0(p.beta), GateStride: gateStride}
	return p
}

// part is rows [from, to) of the problem.
func (d *delta) part(from, to int) *Delta {
	p := d.Delta
	p.Q, p.K, p.V = at(d.Q, from*d.Stride), at(d.K, from*d.Stride), at(d.V, from*d.Stride)
	p.Out, p.Decay, p.Beta = at(d.Out, from*d.OutStride), at(d.Decay, from*d.GateStride), at(d.Beta, from*d.GateStride)
	p.Rows = to - from
	return &p
}

// TestDeltaRule checks that the kernels give the bits of the definition, at once and row by row,
// and that the definition equals the delta rule in float64 up to rounding.
func TestDeltaRule(t *testing.T) {
	eachVec(t, func(t *testing.T, v *Vec, rng *rand.Rand) {
		for _, dim := range []int{1, 3, 4, 5, 31, 64, 128} {
			for _, columns := range []int{1, 8, 15, 16, 17, 24, 31, 32} {
				for _, rows := range []int{1, 2, 7} {
					for _, d := range []drawing{ordinary, specials} {
						checkDelta(t, v, newDelta(t, rng, dim, columns, rows, d), d)
					}
				}
			}
		}
	})
}

func checkDelta(t *testing.T, v *Vec, p *delta, d drawing) {
	t.Helper()
	what := fmt.Sprintf("dim %d, %d columns, %d rows, drawing %d", p.Dim, p.Columns, p.Rows, d)
	state, first := slices.Clone(p.state), slices.Clone(p.state)
	ref := p.Delta
	out := poison(make([]float32, len(p.out)))
	ref.Out = p0(out)
	Ref().DeltaRule(&ref, p0(state))
	v.DeltaRule(&p.Delta, p0(p.state))
	wantSame(t, what+": output", p.out, out)
	wantSame(t, what+": state", p.state, state)
	copy(p.state, first)
	for r := range p.Rows {
		v.DeltaRule(p.part(r, r+1), p0(p.state))
	}
	wantSame(t, what+": output row by row", p.out, out)
	wantSame(t, what+": state row by row", p.state, state)
	if d != ordinary {
		return
	}
	want := deltaOf(p, first)
	for r := range p.Rows {
		for c := range p.Columns {
			if got := float64(out[r*p.OutStride+c]); math.Abs(got-want[r][c]) > 2e-5 {
				t.Fatalf("%s: row %d column %d is %g, want %g", what, r, c, got, want[r][c])
			}
		}
	}
}

// deltaOf is the rule as the paper writes it, in float64.
func deltaOf(p *delta, state []float32) (out [][]float64) {
	s := make([]float64, p.Dim*p.Columns)
	at := func(i, c int) *float64 { return &s[i*p.Columns+c] }
	for i := range p.Dim {
		for c := range p.Columns {
			*at(i, c) = float64(state[(c/lanes*p.Dim+i)*lanes+c%lanes])
		}
	}
	for r := range p.Rows {
		row := make([]float64, p.Columns)
		for c := range row {
			held := 0.0
			for i := range p.Dim {
				*at(i, c) *= float64(p.decay[r*p.GateStride])
				held += float64(p.k[r*p.Stride+i]) * *at(i, c)
			}
			x := float64(p.beta[r*p.GateStride]) * (float64(p.v[r*p.Stride+c]) - held)
			for i := range p.Dim {
				*at(i, c) += float64(p.k[r*p.Stride+i]) * x
				row[c] += float64(p.q[r*p.Stride+i]) * *at(i, c)
			}
		}
		out = append(out, row)
	}
	return out
}

// TestDeltaGates compares with float64, also far out.
func TestDeltaGates(t *testing.T) {
	for _, x := range []float64{-200, -30, -5, -1, -1e-3, 0, 1e-3, 0.7, 3, 19, 25, 90} {
		alpha, beta := []float32{float32(x)}, []float32{float32(x)}
		DeltaGates(alpha, beta, []float32{-0.7}, []float32{0})
		plus := math.Log1p(math.Exp(-math.Abs(x))) + max(x, 0)
		if want := math.Exp(-0.7 * plus); math.Abs(float64(alpha[0])-want) > 3e-7 {
			t.Errorf("decay of %g is %g, want %g", x, alpha[0], want)
		}
		if want := 1 / (1 + math.Exp(-x)); math.Abs(float64(beta[0])-want) > 3e-7 {
			t.Errorf("rate of %g is %g, want %g", x, beta[0], want)
		}
	}
}

// BenchmarkDelta is one head's block of columns over a chunk: operations a cycle can be read off.
func BenchmarkDelta(b *testing.B) {
	for _, isa := range kernel.Host().ISAs() {
		v, err := New(isa)
		if err != nil || isa == kernel.Go {
			continue
		}
		b.Run(isa.String(), func(b *testing.B) {
			const dim, columns, rows, heads = 128, 32, 256, 16
			x := make([]float32, rows*(3*dim*heads))
			state, out, gate := make([]float32, dim*columns), make([]float32, rows*dim*heads), make([]float32, 2*rows)
			rng := rand.New(rand.NewPCG(1, 1))
			draw(rng, x, ordinary)
			for i := range gate {
				gate[i] = 0.9
			}
			for r := range rows {
				v.L2NormRows(&x[r*3*dim*heads], dim, 2*heads, dim, 1, 1e-6)
			}
			d := Delta{Dim: dim, Columns: columns, Rows: rows, Q: &x[0], K: &x[dim*heads], V: &x[2*dim*heads],
				Stride: 3 * dim * heads, Out: &out[0], OutStride: dim * heads, Decay: &gate[0], Beta: &gate[rows],
				GateStride: 1}
			for b.Loop() {
				v.DeltaRule(&d, &state[0])
			}
			b.ReportMetric(7*float64(dim*columns*rows)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}
