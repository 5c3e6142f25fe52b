package heuristic

import (
	"errors"
	"strings"
	"testing"

	"sandwich/plans"
	"sandwich/plans/internal/hosttest"
	"sandwich/topotree"
)

// TestWorkersOfTwoISAs checks that a worker that is set to AVX2 is a class with AVX2 tables on the
// common paths, and that one setting for all workers makes no class.
func TestWorkersOfTwoISAs(t *testing.T) {
	h := hosttest.Cores(t, 4, "avx2", "avx512", "avx512_vnni")
	model := plans.ModelShape{Arch: "llama", Name: "x", Hidden: 256, Layers: 1, Heads: 4, KVHeads: 4, HeadDim: 64,
		FFN:   512,
		Vocab: 512, Weights: []plans.WeightShape{{Role: "q", N: 256, K: 256, Type: "q8_0", Count: 1},
			{Role: "k", N: 256, K: 256, Type: "f32", Count: 1}}}
	p, err := Default(h, model, Options{ISA: "1=avx2,3=avx2"})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Classes) != 1 || p.Classes[0].String() != "avx2 (avx2) on PUs 1,3" || p.ISAOf("").String() != "avx512" {
		t.Fatalf("classes %v, the main one of %s", p.Classes, p.ISAOf(""))
	}
	for _, w := range p.Weights {
		table, ok := p.Decode.TableOf("avx2", w.WeightKey)
		if !ok {
			t.Fatalf("class avx2 has no table of %s", w.WeightKey)
		}
		for _, r := range table.Rules {
			if k := r.Schedule.Kernel; k.ISA.String() != "avx2" || k.Compute != w.Compute {
				t.Errorf("class avx2 runs %s", k)
			}
		}
	}
	for isa, classes := range map[string]int{"avx2": 0, "0=avx2,1=avx2,2=avx2,3=avx2": 0, "0=avx2": 1,
		"avx2,2=avx512": 1,
		"1=avx2,2=go":   2} {
		if p, err := Default(h, model, Options{ISA: isa}); err != nil || len(p.Classes) != classes {
			t.Errorf("%s: %v, want %d classes", isa, err, classes)
		}
	}
	for isa, want := range map[string]error{"7=avx2": plans.ErrForeignHost, "1=neon": plans.ErrISA} {
		if _, err := Default(h, model, Options{ISA: isa}); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", isa, err, want)
		}
	}
}

// TestWorkersWithoutPairs checks that no worker uses the bf16 dot product if one worker lacks it.
func TestWorkersWithoutPairs(t *testing.T) {
	h := hosttest.Rated(t, 1e11, 2e11, hosttest.BF16...)
	model := plans.ModelShape{Arch: "llama", Name: "x", Hidden: 256, Layers: 1, Heads: 4, KVHeads: 4, HeadDim: 64,
		FFN:   512,
		Vocab: 512, Weights: []plans.WeightShape{{Role: "q", N: 256, K: 256, Type: "bf16", Count: 1}}}
	for isa, want := range map[string]string{"": "bf16", "1=avx2": "f32"} {
		p, err := Default(h, model, Options{ISA: isa})
		if err != nil || p.Weights[0].Compute.String() != want {
			t.Errorf("--isa %s: %v, want the path %s", isa, err, want)
		}
	}
	_, err := Default(h, model, Options{ISA: "1=avx2", Compute: "bf16"})
	if err == nil || !strings.Contains(err.Error(), "has none") {
		t.Errorf("bf16 with AVX2 workers: %v", err)
	}
}

// TestCoreTypes checks that core types of the tree become classes, the fastest one the main one.
func TestCoreTypes(t *testing.T) {
	h := hosttest.Cores(t, 4, "avx2")
	h.Machine.CoreTypes = []topotree.CoreType{{Name: "cpu_core", CPUs: topotree.NewCPUSet(2, 3)},
		{Name: "Cortex A55", CPUs: topotree.NewCPUSet(0, 1)}}
	model := plans.ModelShape{Arch: "llama", Name: "x", Hidden: 256, Layers: 1, Heads: 4, KVHeads: 4, HeadDim: 64,
		FFN:   512,
		Vocab: 512, Weights: []plans.WeightShape{{Role: "q", N: 256, K: 256, Type: "f32", Count: 1}}}
	p, err := Default(h, model, Options{})
	if err != nil || len(p.Classes) != 1 || p.Classes[0].String() != "cortex-a55 (avx2) on PUs 0-1, cores Cortex A55" {
		t.Errorf("%v, classes %v", err, p.Classes)
	}
	if p, err = Default(h, model, Options{Threads: 2}); err != nil || len(p.Classes) > 1 {
		t.Errorf("%v, classes %v", err, p.Classes)
	}
}
