package measure

import (
	"math"
	"strings"
	"testing"

	"sandwich/plans"
	"sandwich/plans/heuristic"
	"sandwich/profiles"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/topotree"
)

// roofHost has 1 TOP/s of int8, 200 GFLOP/s of float32 and 20 GB/s of memory.
func roofHost(t *testing.T) *profiles.Profile {
	t.Helper()
	machine, err := topotree.ReadSynthetic("l3:1 core:2 pu:1")
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

// TestRoofIsTheSumOfItsOps: long prompts slow down by their attention, experts that no row takes
// cost nothing, and generation reads its keys.
func TestRoofIsTheSumOfItsOps(t *testing.T) {
	host := roofHost(t)
	shapeOf := func(preset string) plans.ModelShape {
		t.Helper()
		config, err := model.Preset(preset)
		if err != nil {
			t.Fatal(err)
		}
		shape, err := config.Shape(model.Uniform(gguf.Q8_0))
		if err != nil {
			t.Fatal(err)
		}
		return shape
	}
	roof := func(shape plans.ModelShape, test Test) llmRoof {
		t.Helper()
		p, err := heuristic.Default(host, shape, heuristic.Options{SeqMax: 2048})
		if err != nil {
			t.Fatal(err)
		}
		m, err := model.Outline(shape)
		if err != nil {
			t.Fatal(err)
		}
		r, err := roofOf(host, m, p, test)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	dense := shapeOf("tinyllama-1.1b")
	short := roof(dense, Test{Prefill: true, Tokens: 512, Batch: 1})
	long := roof(dense, Test{Prefill: true, Tokens: 16384, Batch: 1})
	perToken := 1/long.rate - 1/short.rate
	if want := 22 * 4 * (16384 - 512) / 2 * 32 * 64 / 200e9; math.Abs(perToken/want-1) > 0.02 {
		t.Errorf("a token of 16384 takes %g s more than one of 512, its attention %g", perToken, want)
	}
	if s := short.String(); !strings.Contains(s, "avx512 int8 1 TOP/s") || !strings.Contains(s,
		"avx512 f32 200 GFLOP/s") {
		t.Errorf("the roof of a prompt is made of %s", s)
	}
	one, far := roof(dense, Test{Tokens: 1, Batch: 1}), roof(dense, Test{Tokens: 8191, Batch: 1})
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
	if got := 1 / roof(moe, Test{Tokens: 1, Batch: 1}).rate * 20e9; got < active || got > all/4 {
		t.Errorf("a step reads %.3g bytes: its experts have %.3g, all together %.3g", got, active, all)
	}
}

// TestAboveTheRoof: what is faster than its roof has the reason.
func TestAboveTheRoof(t *testing.T) {
	for _, c := range []struct {
		rate, memory float64
		want         string
	}{
		{50, 1, ""}, {100, 1, ""}, {145, 1, "above the memory roof: weights lie in cache"},
		{101, 0, "above the compute roof"},
	} {
		got := llmRoof{rate: 100, memory: c.memory}.above(c.rate)
		if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%v of a roof of 100: %q, want %q", c.rate, got, c.want)
		}
	}
}
