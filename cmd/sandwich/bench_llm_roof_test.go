package main

import (
	"math"
	"strings"
	"testing"

	"sandwich/plans"
	"sandwich/plans/thumb"
	"sandwich/profiles"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
)

// roofHost has 1 TOP/s of int8, 200 GFLOP/s of float32 and 20 GB/s of memory.
func roofHost(t *testing.T) *profiles.Profile {
	t.Helper()
	host := zen5(t)
	ceiling := func(kind, typ, level string, v float64) profiles.Ceiling {
		c := profiles.Ceiling{Kind: kind, Type: typ, Level: level, PUs: 2, Figure: profiles.Figure{Median: v, N: 9}}
		if kind == profiles.Compute {
			c.ISA = "avx512"
		}
		return c
	}
	host.Sets = nil
	host.Ceilings = []profiles.Ceiling{ceiling(profiles.Compute, "int8", "", 1e12), ceiling(profiles.Compute,
		"f32", "", 200e9),
		ceiling(profiles.Bandwidth, "", "memory", 20e9)}
	return host
}

// TestRoofIsTheSumOfItsOps: long prompts slow down by their attention, experts that no row takes
// cost nothing, and generation reads its keys.
func TestRoofIsTheSumOfItsOps(t *testing.T) {
	host := roofHost(t)
	roof := func(shape plans.ModelShape, test llmTest) llmRoof {
		t.Helper()
		p, err := thumb.Default(host, shape, thumb.Options{SeqMax: 2048})
		if err != nil {
			t.Fatal(err)
		}
		r, err := roofOf(host, p, test)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	dense := tinyllama(t, gguf.Q8_0)
	short, long := roof(dense, llmTest{"", true, 512, 1}), roof(dense, llmTest{"", true, 16384, 1})
	perToken := 1/long.rate - 1/short.rate
	if want := 22 * 4 * (16384 - 512) / 2 * 32 * 64 / 200e9; math.Abs(perToken/want-1) > 0.02 {
		t.Errorf("a token of 16384 takes %g s more than one of 512, its attention %g", perToken, want)
	}
	if s := short.String(); !strings.Contains(s, "avx512 int8 1 TOP/s") || !strings.Contains(s,
		"avx512 f32 200 GFLOP/s") {
		t.Errorf("the roof of a prompt is made of %s", s)
	}
	one, far := roof(dense, llmTest{"", false, 1, 1}), roof(dense, llmTest{"", false, 8191, 1})
	if got, want := 1/far.rate-1/one.rate, 4095*22*2*4*64*2/20e9; math.Abs(got/want-1) > 0.02 ||
		one.String() != "memory 20 GB/s" {
		t.Errorf("in the middle of 8191 tokens a step takes %g s more than the first, its keys and values %g; "+
			"%s", got, want, one)
	}
	config, err := model.Preset("qwen3-30b-a3b")
	if err != nil {
		t.Fatal(err)
	}
	moe, err := config.Shape(model.Uniform(gguf.Q8_0))
	if err != nil {
		t.Fatal(err)
	}
	active, all := 0.0, 0.0 // matrices of experts, in bytes
	for _, w := range moe.Weights {
		if bytes := float64(w.N) * float64(w.K) * 8.5 / 8 * float64(w.Count); moe.Routed(w) {
			all, active = all+bytes, active+bytes*8/128
		}
	}
	if got := 1 / roof(moe, llmTest{"", false, 1, 1}).rate * 20e9; got < active || got > all/4 {
		t.Errorf("a step reads %.3g bytes: its experts have %.3g, all together %.3g", got, active, all)
	}
}

// TestAboveTheRoof: no share of a roof is above 100 %.
func TestAboveTheRoof(t *testing.T) {
	for _, c := range []struct {
		r    llmRow
		want string
	}{
		{llmRow{Rate: 50, Roof: 100}, "50 %"},
		{llmRow{Rate: 145, Roof: 100, Above: llmRoof{rate: 100, memory: 1}.above(145)}, "above the memory roof: " +
			"weights lie in cache"},
		{llmRow{Rate: 101, Roof: 100, Above: llmRoof{rate: 100}.above(101)}, "above the compute roof"},
	} {
		cells := strings.Join(llmReport.cells(&c.r), "|")
		if !strings.Contains(cells, c.want) || strings.Contains(cells, "145 %") || strings.Contains(cells, "101 %") {
			t.Errorf("%s, want %s", cells, c.want)
		}
	}
	if why := (llmRoof{rate: 100, memory: 1}).above(100); why != "" {
		t.Errorf("at the roof: %s", why)
	}
}
