package cost

import (
	"math"
	"strings"
	"testing"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/model/synth"
)

// windowed is a family of four layers, of which every second one sees few positions.
func init() {
	arch.Register(arch.Architecture{Name: "windowed", Decoder: func(b *model.Builder) {
		b.Embed(1)
		for i := range b.Layers() {
			b.Norm("attn_norm")
			b.QKV(model.Never)
			b.Attend(model.Attn{Scale: 1, Window: 16 * (i % 2)})
			b.AttnOut()
			b.Norm("ffn_norm")
			b.FFN(model.SwiGLU)
		}
		b.Norm("output_norm")
		b.Head(1)
	}})
}

// planOf is a plan for a configuration whose matrices are of one type, all in one arithmetic.
func planOf(t *testing.T, c model.Config, typ gguf.Type, path microkernel.Compute) *plans.Plan {
	t.Helper()
	shape, err := synth.Shape(c, synth.Uniform(typ))
	if err != nil {
		t.Fatal(err)
	}
	p := &plans.Plan{KV: microkernel.KVF16, Model: shape}
	for _, k := range shape.Unique() {
		if k.Type == typ.String() {
			p.Weights = append(p.Weights, plans.WeightPlan{WeightKey: k, Compute: path})
		}
	}
	return p
}

func workOf(t *testing.T, c model.Config, p *plans.Plan) *Work {
	t.Helper()
	m, err := arch.Model(c)
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWork(m, p)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// sums adds tasks up by arithmetic.
func sums(tasks []Task) map[string]Task {
	out := map[string]Task{}
	for _, t := range tasks {
		out[t.Compute] = Task{Compute: t.Compute, Step: out[t.Compute].Add(t.Step)}
	}
	return out
}

func expect(t *testing.T, name string, got Task, flop, bytes float64) {
	t.Helper()
	if math.Abs(got.FLOP/flop-1) > 1e-9 || math.Abs(got.Bytes/bytes-1) > 1e-4 {
		t.Errorf("%s: %g operations and %g bytes, want %g and %g", name, got.FLOP, got.Bytes, flop, bytes)
	}
}

// TestWork counts what one row and many do: every matrix in its own arithmetic, experts as far as
// rows reach them, attention and routers in float32.
func TestWork(t *testing.T) {
	c := synth.Small("qwen3moe")
	c.Experts = model.Experts{Count: 16, Used: 4, FFN: 256}
	w := workOf(t, c, planOf(t, c, gguf.Q8_0, microkernel.ComputeInt8))
	const layers, attn, expert, head = 2, 2*256*256 + 2*64*256, 3 * 256 * 256, 600 * 256
	const router, kvToken = layers * 16 * 256, 2 * layers * 2 * 32 * 2
	one := sums(w.Of(Rows{Spans: []Span{{Pos: 9, N: 1}}, Heads: 1}))
	values := float64(layers*(attn+4*expert) + head)
	expect(t, "one row", one["int8"], 2*values, values*8.5/8)
	expect(t, "one row", one["f32"], 2*router+layers*4*10*8*32, 4*router+10*kvToken)
	chunk := sums(w.Of(Rows{Spans: []Span{{Pos: 100, N: 64}}}))
	values = float64(layers * (attn + 16*expert))
	expect(t, "a chunk without logits", chunk["int8"], 64*2*float64(layers*(attn+4*expert)), values*8.5/8)
	expect(t, "a chunk without logits", chunk["f32"], 64*2*router+layers*4*(64*164-64*63/2)*8*32,
		4*router+164*kvToken)
}

// TestWorkOfWindows checks that a layer with a window multiplies and reads only the positions in
// it.
func TestWorkOfWindows(t *testing.T) {
	c := synth.Small("windowed")
	c.Layers = 4
	p := planOf(t, c, gguf.Q8_0, microkernel.ComputeInt8)
	w := workOf(t, c, p)
	for _, x := range []struct {
		span        Span
		pairs, seen float64 // of a layer with a window
	}{{Span{0, 1}, 1, 1}, {Span{99, 1}, 16, 16}, {Span{0, 8}, 36, 8}, {Span{10, 10}, 11 + 12 + 13 + 14 + 15 + 5*16, 20},
		{Span{500, 32}, 32 * 16, 47}} {
		end, n := float64(x.span.Pos+x.span.N), float64(x.span.N)
		got := sums(w.Of(Rows{Spans: []Span{x.span}}))["f32"]
		pairs := 2 * (x.pairs + n*end - n*(n-1)/2)
		expect(t, "a span", got, 4*pairs*8*32, 2*(x.seen+end)*2*2*32*2)
	}
}

// TestWorkOfMixedTypes checks that matrices of different types count as their own type each.
func TestWorkOfMixedTypes(t *testing.T) {
	c := synth.Small("llama")
	p := planOf(t, c, gguf.Q8_0, microkernel.ComputeInt8)
	for i := range p.Model.Weights {
		if p.Model.Weights[i].Role == "down" {
			p.Model.Weights[i].Count--
			one := plans.WeightShape{Role: "down", N: 256, K: 512, Type: "f32", Count: 1}
			p.Model.Weights = append(p.Model.Weights, one)
			break
		}
	}
	one := sums(workOf(t, c, p).Of(Rows{Spans: []Span{{Pos: 0, N: 1}}}))
	expect(t, "float32", one["f32"], 2*256*512+2*4*8*32, 4*256*512+2*2*2*2*32)
	for name, want := range map[string]string{"up": "no weight up of 512x256 for blk.1.ffn_up",
		"q": "no weight q"} {
		broken := *p
		broken.Model.Weights = nil
		for _, s := range p.Model.Weights {
			if s.Role != name || name == "up" {
				if s.Role == name {
					s.Count = 1
				}
				broken.Model.Weights = append(broken.Model.Weights, s)
			}
		}
		m, err := arch.Model(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := NewWork(m, &broken); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a plan without %s: %v", name, err)
		}
	}
}
