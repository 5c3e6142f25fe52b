package plans

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"sandwich/microkernel"
	"sandwich/profiles"
	"sandwich/topotree"
)

// testHost is a machine of cores without siblings in one package, with 2 MiB of L2 each.
func testHost(t testing.TB, cores int, isa ...string) *profiles.Profile {
	t.Helper()
	all := topotree.CPURange(0, cores-1)
	d := topotree.Description{Source: "test", Arch: "x86_64", Model: "Test CPU", Online: all,
		Memory: []topotree.MemoryNode{{ID: 0, CPUs: all, Bytes: 16 << 30}}}
	core := topotree.LevelData{Kind: topotree.KindCore}
	l2 := topotree.LevelData{Kind: topotree.KindL2, Bytes: 2 << 20}
	for c := range cores {
		core.Sets = append(core.Sets, topotree.NewCPUSet(c))
		l2.Sets = append(l2.Sets, topotree.NewCPUSet(c))
	}
	d.Levels = []topotree.LevelData{{Kind: topotree.KindPackage, Sets: []topotree.CPUSet{all}}, l2, core}
	m, err := d.Machine()
	if err != nil {
		t.Fatal(err)
	}
	return profiles.New(m, profiles.Identity{ISA: isa, L1D: 48 << 10})
}

func mustDefault(t testing.TB, h *profiles.Profile, s ModelShape, o DefaultOptions) *Plan {
	t.Helper()
	p, err := Default(h, s, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
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
				h := testHost(t, cores, isa...)
				p := mustDefault(t, h, llama160m(typ), DefaultOptions{})
				if need := p.Needs(); !h.Features().Has(need) || need.Has(microkernel.HasAMX) {
					t.Errorf("%v %s: needs %v", isa, typ, need)
				}
				if len(p.Prefill.PUs) != cores || !slices.Equal(p.Prefill.PUs, p.Decode.PUs) {
					t.Errorf("%v %s: PUs %s and %s on %d cores", isa, typ, p.Prefill.PUs, p.Decode.PUs, cores)
				}
				checkDefaultWork(t, p, cores)
			}
		}
	}
}

// checkDefaultWork asks that rows are not wasted and that every thread gets a slice wherever there
// are enough columns.
func checkDefaultWork(t *testing.T, p *Plan, threads int) {
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
		chain   Chain
	}{
		{[]string{"avx2", "avx512"}, "q8_0", "", microkernel.ComputeF32, ChainWide},
		{[]string{"avx2", "avx512"}, "q4_0", "auto", microkernel.ComputeInt8, ChainBlock},
		{[]string{"avx2"}, "q8_0", "", microkernel.ComputeInt8, ChainBlock},
		{[]string{"avx2", "avx512", "avx512_vnni"}, "q8_0", "auto", microkernel.ComputeInt8, ChainBlock},
		{[]string{"avx2", "avx512", "avx512_vnni"}, "q4_0", "f32", microkernel.ComputeF32, ChainWide},
		{[]string{"avx2"}, "q4_0", "int8", microkernel.ComputeInt8, ChainBlock},
		{[]string{"avx2", "avx_vnni"}, "q4_0", "", microkernel.ComputeInt8, ChainBlock},
		{[]string{"avx2", "avx512", "avx512_vnni"}, "f16", "int8", microkernel.ComputeF32, ChainWide},
	} {
		p := mustDefault(t, testHost(t, 2, c.isa...), llama160m(c.typ), DefaultOptions{Compute: c.option})
		for _, w := range p.Weights {
			if w.Compute != c.compute || ChainOf(w.Compute) != c.chain {
				t.Errorf("%v %s %q: %+v", c.isa, c.typ, c.option, w)
			}
		}
	}
}

func TestDefaultOptions(t *testing.T) {
	h := testHost(t, 8, "avx2", "avx512")
	p := mustDefault(t, h, llama160m("f32"), DefaultOptions{ISA: "avx2", Threads: 3, KV: "f32", SeqMax: 100,
		BatchMax: 4})
	if len(p.Decode.PUs) != 3 || p.KV != microkernel.KVF32 || p.SeqMax != 100 || p.BatchMax != 4 || p.Chunk != 100 ||
		p.Needs() != microkernel.HasAVX2 {
		t.Errorf("options were not taken: %s kv %s seq %d batch %d chunk %d needs %v", p.Decode.PUs, p.KV, p.SeqMax,
			p.BatchMax, p.Chunk, p.Needs())
	}
	for name, c := range map[string]struct {
		o    DefaultOptions
		s    ModelShape
		kind error
	}{
		"more threads than PUs": {DefaultOptions{Threads: 9}, llama160m("f32"), ErrForeignHost},
		"an ISA it lacks":       {DefaultOptions{ISA: "neon"}, llama160m("f32"), ErrISA},
		"an unknown ISA":        {DefaultOptions{ISA: "mmx"}, llama160m("f32"), nil},
		"an unknown path":       {DefaultOptions{Compute: "fp4"}, llama160m("f32"), nil},
		"an unknown cache":      {DefaultOptions{KV: "f8"}, llama160m("f32"), nil},
		"a type without kernel": {DefaultOptions{}, llama160m("q2_K"), nil},
		"negative threads":      {DefaultOptions{Threads: -1}, llama160m("f32"), nil},
	} {
		_, err := Default(h, c.s, c.o)
		if err == nil || c.kind != nil && !errors.Is(err, c.kind) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLookup(t *testing.T) {
	h := testHost(t, 2, "avx2")
	p := mustDefault(t, h, llama160m("f32"), DefaultOptions{})
	k := p.Model.Unique()[0]
	s := func(bm int) Schedule { return Schedule{BM: bm} }
	ph := Phase{Tables: []Table{{WeightKey: k, Rules: []Rule{{2, 4, s(1)}, {5, 5, s(2)}, {10, 20, s(3)},
		{100, 0, s(4)}}}}}
	for m, want := range map[int]int{1: 1, 2: 1, 4: 1, 5: 2, 6: 2, 7: 2, 8: 3, 10: 3, 20: 3, 59: 3, 61: 4, 100: 4,
		1 << 20: 4} {
		if got, ok := ph.Lookup(k, m); !ok || got.BM != want {
			t.Errorf("m=%d: rule %d, want %d", m, got.BM, want)
		}
	}
	if _, ok := ph.Lookup(WeightKey{1, 2, "f32"}, 1); ok {
		t.Error("an unknown weight has a schedule")
	}
	if n := testing.AllocsPerRun(100, func() { p.Decode.Lookup(k, 7) }); n != 0 {
		t.Errorf("Lookup allocates %v times", n)
	}
}

func TestValidateNames(t *testing.T) {
	h := testHost(t, 2, "avx2", "avx512")
	for want, change := range map[string]func(*Plan){
		"MR 40":         func(p *Plan) { p.Prefill.Tables[0].Rules[0].Schedule.Kernel.MR = 40 },
		"bm is 0":       func(p *Plan) { p.Prefill.Tables[0].Rules[0].Schedule.BM = 0 },
		"bn is -64":     func(p *Plan) { p.Prefill.Tables[0].Rules[0].Schedule.BN = -64 },
		"bk is 7":       func(p *Plan) { p.Decode.Tables[0].Rules[0].Schedule.BK = 7 },
		"bk is -32":     func(p *Plan) { p.Decode.Tables[0].Rules[0].Schedule.BK = -32 },
		"PU 1000000000": func(p *Plan) { p.Ranks[0].PUs = PUSet{0, 1e9} },
		"PU -1":         func(p *Plan) { p.Prefill.PUs = PUSet{-1} },
		"belong to no":  func(p *Plan) { p.Decode.PUs = PUSet{5} },
		"ways 3x1": func(p *Plan) {
			p.Decode.Tables[0].Rules[0].Schedule.WaysM, p.Decode.Tables[0].Rules[0].Schedule.WaysN = 3, 1
		},
		"ways are -1x-2": func(p *Plan) {
			p.Decode.Tables[0].Rules[0].Schedule.WaysM, p.Decode.Tables[0].Rules[0].Schedule.WaysN = -1, -2
		},
		"seq_max is 0":  func(p *Plan) { p.SeqMax = 0 },
		"batch_max":     func(p *Plan) { p.BatchMax = 1 << 30 },
		"chunk is -1":   func(p *Plan) { p.Chunk = -1 },
		"KV cache type": func(p *Plan) { p.KV = 9 },
		"version 3":     func(p *Plan) { p.Version = 3 },
		"the name":      func(p *Plan) { p.Name = "../../x" },
		"0 ranks":       func(p *Plan) { p.Ranks = nil },
		"tables for":    func(p *Plan) { p.Prefill.Tables = p.Prefill.Tables[1:] },
		"table of": func(p *Plan) {
			p.Prefill.Tables[0], p.Prefill.Tables[1] = p.Prefill.Tables[1],
				p.Prefill.Tables[0]
		},
		"is not above":    func(p *Plan) { p.Prefill.Tables[0].Rules[1].MLo = 1 },
		"last rule":       func(p *Plan) { p.Prefill.Tables[0].Rules[len(p.Prefill.Tables[0].Rules)-1].MHi = 1 << 19 },
		"0 rules":         func(p *Plan) { p.Prefill.Tables[0].Rules = nil },
		"unknown compute": func(p *Plan) { p.Weights[0].Compute = 9 },
		"reads f16":       func(p *Plan) { p.Prefill.Tables[0].Rules[0].Schedule.Kernel.B = microkernel.F16 },
		"widen":           func(p *Plan) { p.Prefill.Tables[0].Rules[0].Schedule.Widen = true },
		"pack: a slice": func(p *Plan) {
			s := &p.Prefill.Tables[0].Rules[0].Schedule
			s.Pack, s.BM = true, s.Kernel.MR<<15
		},
		"hidden": func(p *Plan) { p.Model.Hidden = -5 },
	} {
		p := mustDefault(t, h, llama160m("f32"), DefaultOptions{})
		change(p)
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want a refusal that names %q, got %v", want, err)
		}
	}
}

// A schedule reads back as it was written, whichever of its parts are set.
func TestScheduleText(t *testing.T) {
	h := testHost(t, 2, "avx2", "avx512")
	p := mustDefault(t, h, llama160m("q8_0"), DefaultOptions{})
	for _, table := range p.Prefill.Tables {
		for _, r := range table.Rules {
			for _, pack := range []bool{false, true} {
				s := r.Schedule
				s.Pack, s.WaysM, s.WaysN = pack, 1, 2
				text, err := profiles.EncodeYAML(Table{table.WeightKey, []Rule{{1, 0, s}}})
				if err != nil {
					t.Fatal(err)
				}
				var got Table
				if err := profiles.DecodeYAML(text, &got); err != nil || got.Rules[0].Schedule != s {
					t.Fatalf("%s reads back as %+v, %v", s, got.Rules, err)
				}
			}
		}
	}
}
