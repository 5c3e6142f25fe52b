package cost

import (
	"math"
	"slices"
	"testing"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/roofline"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
	"sandwich/runtime/model/arch"
	"sandwich/runtime/model/synth"
	"sandwich/topotree"
)

// m4 is the machine of SMEPilot figure 3 with a dense model of one type.
func m4(t *testing.T, typ gguf.Type) *Placer {
	t.Helper()
	c := synth.Small("llama")
	c.Hidden, c.FFN = 4096, 14336
	p := planOf(t, c, typ, microkernel.ComputeF32)
	host, err := profiles.Builtin("m4pro")
	if err != nil {
		t.Fatal(err)
	}
	p.Prefill.PUs = host.FirstPUs(8)
	p.Decode.PUs = p.Prefill.PUs
	for _, w := range p.Weights {
		s := plans.Schedule{Kernel: microkernel.Spec{ISA: microkernel.NEON, MR: 8, NR: 16}, BM: 8, BN: 16}
		p.Prefill.Tables = append(p.Prefill.Tables, plans.Table{WeightKey: w.WeightKey,
			Rules: []plans.Rule{{MLo: 1, Schedule: s}}})
	}
	p.Decode.Tables = p.Prefill.Tables
	m, err := arch.Model(c)
	if err != nil {
		t.Fatal(err)
	}
	return &Placer{Model: m, Plan: p, Machine: roofline.NewMachine(host), Compute: "f16"}
}

// TestSwitchesOfSMEPilot compares the rows at which ops move from the cores to SME units, and to
// both, with values computed by hand for 1.85 TFLOP/s of cores, 2.92 of SME units and 247 GB/s.
// Weights of 16 bits have 1 FLOP/B per row, so that the ridges are at 7.49 and 11.8 rows; weights
// of 8.5 bits have 1.88, of 4.5 bits 3.56. With 8 and 4 rows the cores keep the op, since the units
// read 224 GB/s: 8 / 1.85 and 7.53 / 1.85 ps are less than 1000 / 224.
func TestSwitchesOfSMEPilot(t *testing.T) {
	for _, c := range []struct {
		typ  gguf.Type
		want []string
	}{
		{gguf.F16, []string{"1-7 neon/f16", "8 neon/f16", "9-11 sme/f16", "12-512 neon/f16 + sme/f16"}},
		{gguf.Q8_0, []string{"1-3 neon/f16", "4 neon/f16", "5-6 sme/f16", "7-512 neon/f16 + sme/f16"}},
		{gguf.Q4_0, []string{"1-2 neon/f16", "3 sme/f16", "4-512 neon/f16 + sme/f16"}},
	} {
		p := m4(t, c.typ)
		ranges, err := p.Ranges("prefill", 512)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range ranges {
			if slices.Contains(r.Ops, "gate_up") {
				got = append(got, r.RowsText()+" "+r.Target)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.typ, got, c.want)
		}
	}
}

// TestOpsAddUpToTheForward checks that the work of the ops adds up to that of the forward, for
// prompts and for generating sequences, with experts and windows.
func TestOpsAddUpToTheForward(t *testing.T) {
	for _, family := range []string{"llama", "qwen3moe", "windowed", "qwen35"} {
		c := synth.Small(family)
		p := planOf(t, c, gguf.Q8_0, microkernel.ComputeInt8)
		m, err := arch.Model(c)
		if err != nil {
			t.Fatal(err)
		}
		work := workOf(t, c, p)
		for _, rows := range []Rows{{Spans: []Span{{Pos: 10, N: 33}}, Heads: 1}, {Spans: []Span{{Pos: 40, N: 33}}},
			{Spans: []Span{{Pos: 5, N: 1}, {Pos: 60, N: 1}}, Heads: 2}} {
			list, at, err := opWorks(m, p, &p.Prefill, rows)
			if err != nil {
				t.Fatal(err)
			}
			var got, want roofline.Work
			counted := 0
			for _, o := range list {
				counted += o.Count
				for _, part := range o.Parts {
					got = got.Add(roofline.Work{FLOP: float64(o.Count) * part.FLOP, Bytes: float64(o.Count) *
						part.Bytes})
				}
			}
			for _, task := range work.Of(rows) {
				want = want.Add(task.Work)
			}
			if math.Abs(got.FLOP/want.FLOP-1) > 1e-9 || math.Abs(got.Bytes/want.Bytes-1) > 1e-9 {
				t.Errorf("%s, %d sequences: %+v op by op, %+v in all", family, len(rows.Spans), got, want)
			}
			if counted != len(m.Ops) || len(at) != len(m.Ops) {
				t.Errorf("%s: %d ops counted and %d placed, of %d", family, counted, len(at), len(m.Ops))
			}
		}
	}
}

// TestRowsOfRows checks that activations count in bytes of their rows, and that their buffers
// decide the cache.
func TestRowsOfRows(t *testing.T) {
	c := synth.Small("llama")
	p := planOf(t, c, gguf.Q8_0, microkernel.ComputeInt8)
	m, err := arch.Model(c)
	if err != nil {
		t.Fatal(err)
	}
	list, _, err := opWorks(m, p, &p.Prefill, Rows{Spans: []Span{{N: 7}}})
	if err != nil {
		t.Fatal(err)
	}
	row, passed := 4*7*float64(c.Hidden), 2*bytesBetween(m, p)
	if values := float64(2*256*256 + 2*64*256 + 3*256*c.FFN); math.Abs(passed-values*8.5/8) > 1 {
		t.Errorf("%g bytes of weights pass in a layer, want %g", passed, values*8.5/8)
	}
	for _, o := range list {
		part := o.Parts[0]
		switch o.Op {
		case "attn_norm":
			if o.Kind == model.OpNorm && (part.Moved != 2*row || part.Touched != 2*row+passed/2) {
				t.Errorf("a norm moves %g bytes in %g, want %g", part.Moved, part.Touched, 2*row)
			}
		case "ffn_norm":
			if part.Moved != 4*row || part.Touched != 3*row+passed/2 {
				t.Errorf("a sum and norm moves %g bytes in %g, want %g in %g", part.Moved, part.Touched, 4*row, 3*row)
			}
		case "head":
			if part.FLOP != 0 {
				t.Errorf("no logits are wanted, and the head does %g FLOP", part.FLOP)
			}
		}
	}
}

// TestVectorsHaveNoMatrixUnit checks that a plan with vector kernels is placed by the rates of
// vectors, also if each core has a matrix unit that determines the int8 peak.
func TestVectorsHaveNoMatrixUnit(t *testing.T) {
	host := &profiles.Profile{}
	for typ, v := range map[string]float64{"f32": 270e9, "int8": 5080e9} {
		host.Ceilings = append(host.Ceilings, profiles.Ceiling{Kind: profiles.Compute, ISA: "avx512", Type: typ, PUs: 2,
			Figure: profiles.Figure{Median: v, N: 9}})
	}
	host.Ceilings = append(host.Ceilings, profiles.Ceiling{Kind: profiles.Bandwidth, Level: "memory", PUs: 2,
		Figure: profiles.Figure{Median: 22e9, N: 9}})
	for kernel, ridge := range map[string]int{"avx512/int8/q8_0/7x32/ku32/load/vnni": 27,
		"avx512/int8/q8_0/16x16/ku32/load/amx": 123} {
		spec, err := microkernel.ParseSpec(kernel)
		if err != nil {
			t.Fatal(err)
		}
		p := m4(t, gguf.Q8_0)
		for i := range p.Plan.Weights {
			p.Plan.Weights[i].Compute = microkernel.ComputeInt8
			p.Plan.Prefill.Tables[i].Rules[0].Schedule = plans.Schedule{Kernel: spec, BM: 96, BN: 64}
		}
		p.Compute, p.Machine, p.Plan.Prefill.PUs = "", roofline.NewMachine(host), topotree.NewCPUSet(0, 1)
		ranges, err := p.Ranges("prefill", 512)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range ranges {
			if slices.Contains(r.Ops, "gate_up") && r.Regime == "compute-bound" && r.From != ridge {
				t.Errorf("%s is bound by computing from %d rows on, want %d", kernel, r.From, ridge)
			}
		}
	}
}
