package heuristic

import (
	"slices"
	"strings"
	"testing"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/plans/internal/hosttest"
	"sandwich/profiles"
)

// mixedShape is a model of which the first two weights are bf16 and the others q8_0.
func mixedShape() plans.ModelShape {
	s := llama160m("bf16")
	for i := range s.Weights {
		if i > 1 {
			s.Weights[i].Type = "q8_0"
		}
	}
	return s
}

// TestDefaultPairs checks that the path is used if requested, for bf16 weights only, and that such
// a plan is not exact.
func TestDefaultPairs(t *testing.T) {
	for _, isa := range [][]string{hosttest.BF16, {"neon", "dotprod", "i8mm", "bf16"}} {
		h := hosttest.Cores(t, 4, isa...)
		if p := mustDefault(t, h, mixedShape(), Options{}); !p.Exact() || p.Rounding() != "" {
			t.Errorf("%v: the default plan is not exact: %s", isa, p.Rounding())
		}
		p := mustDefault(t, h, mixedShape(), Options{Compute: "bf16"})
		if p.Exact() || p.Rounding() != "rounding depends on bf16 instructions" {
			t.Errorf("%v: exact %v, %s", isa, p.Exact(), p.Rounding())
		}
		for _, w := range p.Weights {
			want := map[string]microkernel.Compute{"bf16": microkernel.ComputeBF16, "q8_0": microkernel.ComputeInt8}
			if w.Compute != want[w.Type] {
				t.Errorf("%v: weight %v, want %s", isa, w, want[w.Type])
			}
		}
		if need := p.Needs(); !need.Has(microkernel.HasBF16) && !need.Has(microkernel.HasArmBF16) {
			t.Errorf("%v: the plan needs %v", isa, need)
		}
		checkDefaultWork(t, p, 4)
	}
}

func TestDefaultPairsRefused(t *testing.T) {
	with, without := hosttest.Cores(t, 2, hosttest.BF16...), hosttest.Cores(t, 2, "avx2", "avx512")
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"no such weights": {second(Default(with, llama160m("q8_0"), Options{Compute: "bf16"})),
			"models with bf16 weights"},
		"no such CPU": {second(Default(without, llama160m("bf16"), Options{Compute: "bf16"})),
			"needs a dot product of bfloat16"},
		"no such vectors": {second(Default(with, llama160m("bf16"), Options{Compute: "bf16", ISA: "avx2"})),
			"avx2 on this CPU"},
		"not the plan's CPU": {mustDefault(t, with, llama160m("bf16"),
			Options{Compute: "bf16"}).CheckHost(without), "avx512_bf16"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, c.err, c.want)
		}
	}
}

// TestPairsByMeasuredRates checks that the default path of bf16 weights follows measured rates, for
// every CPU.
func TestPairsByMeasuredRates(t *testing.T) {
	neon := []string{"neon", "dotprod", "i8mm", "bf16"}
	for name, c := range map[string]struct {
		f32, bf16 float64
		isa       []string
		want      microkernel.Compute
	}{
		"Zen 5, twice the rate":          {205.5e9, 405.6e9, hosttest.BF16, microkernel.ComputeBF16},
		"Emerald Rapids, half the rate":  {117e9, 58.4e9, hosttest.BF16, microkernel.ComputeF32},
		"just enough":                    {100e9, 130e9, hosttest.BF16, microkernel.ComputeBF16},
		"not quite":                      {100e9, 129e9, hosttest.BF16, microkernel.ComputeF32},
		"arm64":                          {80e9, 300e9, neon, microkernel.ComputeBF16},
		"rates of a CPU without kernels": {100e9, 200e9, []string{"avx2", "avx512"}, microkernel.ComputeF32},
		"one rate":                       {0, 405.6e9, hosttest.BF16, microkernel.ComputeF32},
		"no rate":                        {0, 0, hosttest.BF16, microkernel.ComputeF32},
	} {
		h := hosttest.Rated(t, c.f32, c.bf16, c.isa...)
		p := mustDefault(t, h, mixedShape(), Options{})
		for _, w := range p.Weights {
			if w.Type == "bf16" && w.Compute != c.want {
				t.Errorf("%s: %v, want %s", name, w, c.want)
			}
		}
		if p.Exact() != (c.want == microkernel.ComputeF32) {
			t.Errorf("%s: exact is %v", name, p.Exact())
		}
		if p := mustDefault(t, h, mixedShape(), Options{Compute: "f32"}); !p.Exact() {
			t.Errorf("%s: --compute f32 is not exact", name)
		}
		for i := range h.Ceilings { // assumed figures do not justify rounding
			h.Ceilings[i].N, h.Ceilings[i].Assumed = 0, true
		}
		if p := mustDefault(t, h, mixedShape(), Options{}); !p.Exact() {
			t.Errorf("%s: assumed rates chose bf16", name)
		}
	}
}

// TestPathsAreKept checks that a plan that is made again on the same machine keeps its paths, and
// thus its bits, regardless of later measurements.
func TestPathsAreKept(t *testing.T) {
	fast, slow := hosttest.Rated(t, 200e9, 400e9, hosttest.BF16...), hosttest.Rated(t, 200e9, 100e9, hosttest.BF16...)
	for _, first := range []*profiles.Profile{fast, slow} {
		plan := mustDefault(t, first, mixedShape(), Options{})
		for _, later := range []*profiles.Profile{fast, slow} {
			again := mustDefault(t, later, mixedShape(), Options{Weights: plan.Weights, Threads: 1})
			if !slices.Equal(again.Weights, plan.Weights) || again.Exact() != plan.Exact() {
				t.Errorf("paths %v became %v", plan.Weights, again.Weights)
			}
		}
	}
}

func second(_ *plans.Plan, err error) error { return err }
