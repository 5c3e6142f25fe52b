package heuristic

import (
	"errors"
	"testing"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/plans/internal/hosttest"
	"sandwich/profiles"
)

func mustDefault(t testing.TB, h *profiles.Profile, s plans.ModelShape, o Options) *plans.Plan {
	t.Helper()
	p, err := Default(h, s, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// llama160m is the preset of that name: a small llama with an untied head.
func llama160m(typ string) plans.ModelShape {
	return decoder("llama-160m", typ, 768, 12, 12, 3072, 32000)
}

// decoder is a llama of 12 layers with heads of 64.
func decoder(name, typ string, hidden, heads, kvHeads, ffn, vocab int) plans.ModelShape {
	s := plans.ModelShape{Arch: "llama", Name: name, Hidden: hidden, Layers: 12, Heads: heads, KVHeads: kvHeads,
		HeadDim: 64, FFN: ffn, Vocab: vocab, Context: 2048}
	add := func(role string, n, k, count int) {
		s.Weights = append(s.Weights, plans.WeightShape{Role: role, N: n, K: k, Type: typ, Count: count})
	}
	add(plans.RoleEmbed, vocab, hidden, 1)
	add("q", 64*heads, hidden, 12)
	add("k", 64*kvHeads, hidden, 12)
	add("v", 64*kvHeads, hidden, 12)
	add("o", hidden, 64*heads, 12)
	add("gate", ffn, hidden, 12)
	add("up", ffn, hidden, 12)
	add("down", hidden, ffn, 12)
	add("head", vocab, hidden, 1)
	return s
}

// hosts are instruction sets as they occur: none, AVX2, AVX-512 as on Skylake, as on Cascade Lake,
// and as on Sapphire Rapids, whose tile registers a guest may lack.
var hosts = [][]string{
	nil,
	{"avx2"},
	{"avx2", "avx_vnni"},
	{"avx2", "avx512"},
	{"avx2", "avx512", "avx512_vnni"},
	{"avx2", "avx512", "avx512_bf16", "avx512_vnni", "avx_vnni"},
	{"amx_int8", "avx2", "avx512", "avx512_bf16", "avx512_vnni", "avx_vnni"},
}

func TestDefaultFitsEveryHost(t *testing.T) {
	for _, isa := range hosts {
		for _, typ := range []string{"f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "iq4_nl", "q2_k", "q3_k",
			"q4_k", "q5_k", "q6_k"} {
			for _, cores := range []int{1, 2, 7, 64} {
				h := hosttest.Cores(t, cores, isa...)
				p := mustDefault(t, h, llama160m(typ), Options{})
				if need := p.Needs(); !h.Features().Has(need) || need.Has(microkernel.HasAMX) {
					t.Errorf("%v %s: needs %v", isa, typ, need)
				}
				if p.Prefill.PUs.Count() != cores || !p.Prefill.PUs.Equal(p.Decode.PUs) {
					t.Errorf("%v %s: PUs %s and %s on %d cores", isa, typ, p.Prefill.PUs, p.Decode.PUs, cores)
				}
				checkDefaultWork(t, p, cores)
			}
		}
	}
}

// checkDefaultWork asks that rows are not wasted and that every thread gets a slice wherever there
// are enough columns.
func checkDefaultWork(t *testing.T, p *plans.Plan, threads int) {
	t.Helper()
	for _, table := range p.Prefill.Tables {
		for _, m := range []int{1, 2, 3, 4, 8, 14, 16, 17, 32, 33, 64, 100, 512, 5000} {
			s, ok := p.Prefill.Lookup(table.WeightKey, m)
			if !ok {
				t.Fatalf("no schedule for %s m=%d", table.WeightKey, m)
			}
			slices := (m + s.BM - 1) / s.BM * ((table.N + s.BN - 1) / s.BN)
			if panels := table.N / microkernel.PanelWidth; slices < threads && panels >= 4*threads {
				t.Errorf("%s m=%d: %d slices of %s for %d threads", table.WeightKey, m, slices, s, threads)
			}
		}
	}
}

func TestDefaultComputePath(t *testing.T) {
	for _, c := range []struct {
		isa     []string
		typ     string
		option  string
		compute microkernel.Compute
		chain   plans.Chain
	}{
		{[]string{"avx2", "avx512"}, "q8_0", "", microkernel.ComputeF32, plans.ChainWide},
		{[]string{"avx2", "avx512"}, "q4_0", "auto", microkernel.ComputeInt8, plans.ChainBlock},
		{[]string{"avx2"}, "q8_0", "", microkernel.ComputeInt8, plans.ChainBlock},
		{[]string{"avx2", "avx512", "avx512_vnni"}, "q8_0", "auto", microkernel.ComputeInt8, plans.ChainBlock},
		{[]string{"avx2", "avx512", "avx512_vnni"}, "q4_0", "f32", microkernel.ComputeF32, plans.ChainWide},
		{[]string{"avx2"}, "q4_0", "int8", microkernel.ComputeInt8, plans.ChainBlock},
		{[]string{"avx2", "avx_vnni"}, "q4_0", "", microkernel.ComputeInt8, plans.ChainBlock},
		{[]string{"avx2", "avx512", "avx512_vnni"}, "f16", "int8", microkernel.ComputeF32, plans.ChainWide},
		{[]string{"avx2", "avx512", "avx512_vnni"}, "q4_k", "", microkernel.ComputeInt8Superblock, plans.ChainGroup},
		{[]string{"avx2"}, "iq4_xs", "auto", microkernel.ComputeInt8Superblock, plans.ChainGroup},
		{[]string{"avx2"}, "q6_k", "int8-256", microkernel.ComputeInt8Superblock, plans.ChainGroup},
		{[]string{"avx2", "avx512", "avx512_vnni"}, "q6_k", "int8", microkernel.ComputeInt8, plans.ChainBlock},
		{[]string{"neon", "dotprod"}, "q4_k", "", microkernel.ComputeInt8, plans.ChainBlock},
	} {
		p := mustDefault(t, hosttest.Cores(t, 2, c.isa...), llama160m(c.typ), Options{Compute: c.option})
		for _, w := range p.Weights {
			if w.Compute != c.compute || plans.ChainOf(w.Compute) != c.chain {
				t.Errorf("%v %s %q: %+v", c.isa, c.typ, c.option, w)
			}
		}
	}
}

func TestOptions(t *testing.T) {
	h := hosttest.Cores(t, 8, "avx2", "avx512")
	p := mustDefault(t, h, llama160m("f32"), Options{ISA: "avx2", Threads: 3, KV: "f32", SeqMax: 100,
		BatchMax: 4})
	if p.Decode.PUs.Count() != 3 || p.KV != microkernel.KVF32 || p.SeqMax != 100 || p.BatchMax != 4 || p.Chunk != 100 ||
		p.Needs() != microkernel.HasAVX2 {
		t.Errorf("options were not taken: %s kv %s seq %d batch %d chunk %d needs %v", p.Decode.PUs, p.KV, p.SeqMax,
			p.BatchMax, p.Chunk, p.Needs())
	}
	for name, c := range map[string]struct {
		o    Options
		s    plans.ModelShape
		kind error
	}{
		"more threads than PUs": {Options{Threads: 9}, llama160m("f32"), plans.ErrForeignHost},
		"an ISA it lacks":       {Options{ISA: "neon"}, llama160m("f32"), plans.ErrISA},
		"an unknown ISA":        {Options{ISA: "mmx"}, llama160m("f32"), nil},
		"an unknown path":       {Options{Compute: "fp4"}, llama160m("f32"), nil},
		"an unknown cache":      {Options{KV: "f8"}, llama160m("f32"), nil},
		"a type without kernel": {Options{}, llama160m("q2_K"), nil},
		"negative threads":      {Options{Threads: -1}, llama160m("f32"), nil},
	} {
		_, err := Default(h, c.s, c.o)
		if err == nil || c.kind != nil && !errors.Is(err, c.kind) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
