package llm

import (
	"math"
	"strings"
	"testing"

	"sandwich/plans"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model/modelshape"
	"sandwich/runtime/model/synth"
	"sandwich/topotree/hwloc"
)

// ceilingHost returns a profile with 1 TOP/s of int8, 200 GFLOP/s of float32 and 20 GB/s of memory.
func ceilingHost(t *testing.T) *profiles.Profile {
	t.Helper()
	machine, err := hwloc.ReadSynthetic("l3:1 core:2 pu:1")
	if err != nil {
		t.Fatal(err)
	}
	host := profiles.New(machine, profiles.Identity{Arch: "amd64", ISA: []string{"avx2", "avx512", "avx512_vnni"}})
	ceiling := func(kind, typ, level string, v float64) profiles.Ceiling {
		c := profiles.Ceiling{Kind: kind, Type: typ, Level: level, PUs: 2, Figure: profiles.Figure{Median: v, N: 9}}
		if kind == profiles.Compute {
			c.ISA = "avx512"
		}
		return c
	}
	host.Ceilings = []profiles.Ceiling{ceiling(profiles.Compute, "int8", "", 1e12), ceiling(profiles.Compute,
		"f32", "", 200e9),
		ceiling(profiles.Bandwidth, "", "memory", 20e9)}
	return host
}

// TestCeilingIsTheSumOfItsOps checks that attention slows down long prompts, that experts without
// rows cost nothing, and that decode reads its keys.
func TestCeilingIsTheSumOfItsOps(t *testing.T) {
	host := ceilingHost(t)
	shapeOf := func(preset string) plans.ModelShape {
		t.Helper()
		config, err := synth.Preset(preset)
		if err != nil {
			t.Fatal(err)
		}
		shape, err := synth.Shape(config, synth.Uniform(gguf.Q8_0))
		if err != nil {
			t.Fatal(err)
		}
		return shape
	}
	ceiling := func(shape plans.ModelShape, test Test) llmCeiling {
		t.Helper()
		p, err := heuristic.Default(host, shape, heuristic.Options{SeqMax: 2048})
		if err != nil {
			t.Fatal(err)
		}
		m, err := modelshape.Outline(shape)
		if err != nil {
			t.Fatal(err)
		}
		r, err := ceilingOf(host, m, p, test)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	dense := shapeOf("tinyllama-1.1b")
	short := ceiling(dense, Test{Prefill: true, Tokens: 512, Batch: 1})
	long := ceiling(dense, Test{Prefill: true, Tokens: 16384, Batch: 1})
	perToken := 1/long.rate - 1/short.rate
	if want := 22 * 4 * (16384 - 512) / 2 * 32 * 64 / 200e9; math.Abs(perToken/want-1) > 0.02 {
		t.Errorf("a token of 16384 takes %g s more than one of 512, its attention %g", perToken, want)
	}
	if s := short.String(); !strings.Contains(s, "avx512 int8 1 TOP/s") || !strings.Contains(s,
		"avx512 f32 200 GFLOP/s") {
		t.Errorf("the ceiling of a prompt is made of %s", s)
	}
	one, far := ceiling(dense, Test{Tokens: 1, Batch: 1}), ceiling(dense, Test{Tokens: 8191, Batch: 1})
	if got, want := 1/far.rate-1/one.rate, 4095*22*2*4*64*2/20e9; math.Abs(got/want-1) > 0.02 ||
		one.String() != "memory 20 GB/s" {
		t.Errorf("in the middle of 8191 tokens a step takes %g s more than the first, its keys and values %g; "+
			"%s", got, want, one)
	}
	moe := shapeOf("qwen3-30b-a3b")
	active, all := 0.0, 0.0 // matrices of experts, in bytes
	for _, w := range moe.Weights {
		if bytes := float64(w.N) * float64(w.K) * 8.5 / 8 * float64(w.Count); moe.Routed(w) {
			all, active = all+bytes, active+bytes*8/128
		}
	}
	if got := 1 / ceiling(moe, Test{Tokens: 1, Batch: 1}).rate * 20e9; got < active || got > all/4 {
		t.Errorf("a step reads %.3g bytes: its experts have %.3g, all together %.3g", got, active, all)
	}
}

// TestAboveTheCeiling checks the explanation of rates above the ceiling.
func TestAboveTheCeiling(t *testing.T) {
	for _, c := range []struct {
		rate, memory float64
		want         string
	}{
		{50, 1, ""}, {100, 1, ""}, {145, 1, "above the memory ceiling: weights lie in cache"},
		{101, 0, "above the compute ceiling"},
	} {
		got := llmCeiling{rate: 100, memory: c.memory}.above(c.rate)
		if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%v of a ceiling of 100: %q, want %q", c.rate, got, c.want)
		}
	}
}
