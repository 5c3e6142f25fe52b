package execgraph

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/profiles/devrates"
	"sandwich/roofline"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/model/cost"
	"sandwich/runtime/model/synth"
	"sandwich/runtime/offload"
	"sandwich/runtime/phase"
	"sandwich/topotree"
)

// subject is a model with a plan, on a machine with a device.
type subject struct {
	ops      *model.Model
	placer   *cost.Placer
	forecast *offload.Forecast
}

// device returns rates under which all kernels take time for operations, bytes or launches.
func device(t *testing.T, ops *model.Model, p *plans.Plan) *devrates.Device {
	t.Helper()
	d := &devrates.Device{ID: "sim:0", WriteBytesPerSecond: 1e9, CopyBackBytesPerSecond: 2e9, LaunchSeconds: 1e-5}
	names := []string{"attention", "rows"}
	products, err := offload.Products(ops, p)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range products {
		names = append(names, x.Class())
	}
	for _, name := range names {
		d.Classes = append(d.Classes, devrates.Class{Name: name, BytesPerSecond: 1e10, FLOPPerSecond: 1e11,
			LeastSeconds: 1e-6})
	}
	return d
}

func newSubject(t *testing.T, family string) *subject {
	t.Helper()
	c := synth.Small(family)
	shape, err := synth.Shape(c, synth.Uniform(gguf.F32))
	if err != nil {
		t.Fatal(err)
	}
	host, err := profiles.Builtin("core-ultra-125h")
	if err != nil {
		t.Fatal(err)
	}
	spec := microkernel.Spec{ISA: microkernel.AVX2, Compute: microkernel.ComputeF32, MR: 1, NR: 16}
	p := &plans.Plan{KV: microkernel.KVF16, Model: shape, Chunk: 64}
	for _, ph := range []*plans.Phase{&p.Prefill, &p.Decode} {
		ph.PUs = topotree.CPURange(0, 3)
		for _, k := range shape.Unique() {
			rule := plans.Rule{MLo: 1, Schedule: plans.Schedule{Kernel: spec, BM: 1, BN: 16}}
			ph.Tables = append(ph.Tables, plans.Table{WeightKey: k, Rules: []plans.Rule{rule}})
		}
	}
	for _, k := range shape.Unique() {
		p.Weights = append(p.Weights, plans.WeightPlan{WeightKey: k, Compute: microkernel.ComputeF32})
	}
	ops, err := arch.Model(c)
	if err != nil {
		t.Fatal(err)
	}
	s := &subject{ops: ops}
	s.placer = &cost.Placer{Model: ops, Plan: p, Machine: roofline.NewMachine(host), Context: 100, Compute: "f32"}
	if s.forecast, err = offload.NewForecast(device(t, ops, p), ops, p); err != nil {
		t.Fatal(err)
	}
	return s
}

// graph returns the graph of a forward of 32 rows, or of 3 sequences, which takes a second on the
// cores.
func (s *subject) graph(t *testing.T, of phase.Phase, bound, other string) *Graph {
	t.Helper()
	o := Options{Model: s.ops, Phase: of, Rows: 32, Heads: 1, Context: 100, KV: microkernel.KVF16, Bound: bound,
		Other: other}
	if of == phase.Decode {
		o.Rows, o.Heads = 3, 3
	}
	var err error
	if o.Cores, err = OnCores(s.placer, of, o.Rows, time.Second); err != nil {
		t.Fatal(err)
	}
	o.Device = OnDevice("sim:0", s.forecast, o)
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestSeconds checks that the time of a graph is that from which a placement is chosen.
func TestSeconds(t *testing.T) {
	s := newSubject(t, "llama")
	toCores, _ := s.forecast.Copies()
	for _, of := range phase.All {
		if got := s.graph(t, of, Cores, Cores).Seconds; math.Abs(got-1) > 1e-9 {
			t.Errorf("%v on the cores: %g s, want 1", of, got)
		}
		g := s.graph(t, of, "sim:0", Cores)
		heads := 1
		if of == phase.Decode {
			heads = g.Rows
		}
		want := s.forecast.Forward(of, g.Rows, g.Context, heads).Seconds() + float64(g.Rows)*toCores/1e9
		if math.Abs(g.Seconds-want) > 2e-9 || want <= 0 {
			t.Errorf("%v on the device: %g s, want %g", of, g.Seconds, want)
		}
	}
}

// text describes a graph without figures.
func text(g *Graph) string {
	var b strings.Builder
	for i := range g.Kernels {
		k := &g.Kernels[i]
		fmt.Fprintf(&b, "%s on %s x%d\n", g.Label(k), k.Bound, k.Count)
	}
	for _, e := range g.Edges {
		if e.Moves {
			fmt.Fprintf(&b, "%s -> %s: %s %g x%d\n", e.From, e.To, e.Carries, e.Bytes, e.Count)
		}
	}
	return b.String()
}

// TestMoves checks which data moves between cores and device, with its size: rows of 256 float32,
// keys and values of 4 heads of 64 float16, logits of 320 tokens.
func TestMoves(t *testing.T) {
	s := newSubject(t, "llama")
	m := s.ops
	kv := 32 * 4 * float64(m.Ops[3].Heads.KV*m.Ops[3].Heads.Dim)
	x := 32 * 4 * float64(m.Dims.Hidden)
	const kernels = "embed on cores x1\nqkv 0 on %[1]s x1\nattention on %[1]s x2\nffn on %[1]s x2\n" +
		"qkv 1 on %[1]s x1\nhead on %[1]s x1\n"
	for name, c := range map[string]struct{ bound, other, want string }{
		"cores alone": {Cores, Cores, ""},
		"prefill on the device": {"sim:0", Cores, fmt.Sprintf("embed -> qkv 0: residual %[1]g x1\n"+
			"qkv 0 -> KV cache of cores: keys and values %[2]g x1\n"+
			"qkv 1 -> KV cache of cores: keys and values %[2]g x1\nhead -> sampling: logits %[3]g x1\n", x, kv,
			4*float64(m.Outputs))},
		"decode on the device": {Cores, "sim:0", fmt.Sprintf("qkv 0 -> KV cache of sim:0: keys and values %[1]g x1\n"+
			"qkv 1 -> KV cache of sim:0: keys and values %[1]g x1\n", kv)},
	} {
		want := fmt.Sprintf(kernels, c.bound) + c.want
		if got := text(s.graph(t, phase.Prefill, c.bound, c.other)); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}

// TestExperts checks that the cores run experts if a device runs the rest, and that activations
// pass to them and back in each layer.
func TestExperts(t *testing.T) {
	g := newSubject(t, "qwen3moe").graph(t, phase.Decode, "sim:0", Cores)
	var to, back bool
	for _, e := range g.Edges {
		to = to || e.To == "experts" && strings.Contains(e.Carries, "router logits") && e.Moves
		back = back || e.From == "experts" && e.Carries == "output" && e.Moves
	}
	if !to || !back {
		t.Errorf("no hand-over of activations to experts and back:\n%s", text(g))
	}
}

// TestVariants checks the rows of variants: devices have programs for fixed rows only of products
// of long prompts.
func TestVariants(t *testing.T) {
	s := newSubject(t, "llama")
	rows := func(g *Graph) (out []string) {
		for i := range g.Kernels {
			for _, v := range g.Kernels[i].Variants {
				if v.Target == "sim:0" {
					out = append(out, g.Kernels[i].Name+": "+v.Rows)
				}
			}
		}
		return slices.Compact(out)
	}
	const static = "dynamic, static"
	want := []string{"qkv: " + static, "attention: dynamic", "ffn: " + static, "qkv: " + static, "head: dynamic"}
	if got := rows(s.graph(t, phase.Prefill, Cores, Cores)); !slices.Equal(got, want) {
		t.Errorf("prefill: %q, want %q", got, want)
	}
	for _, v := range rows(s.graph(t, phase.Decode, Cores, Cores)) {
		if strings.Contains(v, "static") {
			t.Errorf("decode: %s", v)
		}
	}
}

// TestUnknown checks a device without rates, and a plan whose device is missing.
func TestUnknown(t *testing.T) {
	s := newSubject(t, "llama")
	s.forecast = nil
	if g := s.graph(t, phase.Prefill, "sim:0", Cores); !g.Unknown || g.Seconds != 0 {
		t.Errorf("%g s, want an unknown time", g.Seconds)
	}
	cores, err := OnCores(s.placer, phase.Decode, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = New(Options{Model: s.ops, Rows: 1, Cores: cores, Bound: "sim:0"}); err == nil {
		t.Error("a kernel without a variant on its target was accepted")
	}
}

// TestFamilies checks that every op of every family belongs to one kernel.
func TestFamilies(t *testing.T) {
	for _, family := range synth.Families() {
		m, err := arch.Model(synth.Small(family))
		if err != nil {
			t.Fatal(family, err)
		}
		next := 0
		for _, g := range groupOps(m) {
			for _, i := range g.ops {
				if i != next {
					t.Errorf("%s: op %d follows op %d", family, i, next-1)
				}
				next++
			}
		}
		if next != len(m.Ops) {
			t.Errorf("%s: %d of %d ops belong to kernels", family, next, len(m.Ops))
		}
	}
}
