package plans_test

import (
	"strings"
	"testing"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/plans/internal/hosttest"
	"sandwich/plans/internal/plantest"
	"sandwich/profiles"
	"sandwich/topotree"
)

func TestLookup(t *testing.T) {
	h := hosttest.Cores(t, 2, "avx2")
	p := plantest.Default(t, h, plantest.Llama160M("f32"), "")
	k := p.Model.Unique()[0]
	s := func(bm int) plans.Schedule { return plans.Schedule{BM: bm} }
	ph := plans.Phase{Tables: []plans.Table{{WeightKey: k, Rules: []plans.Rule{{2, 4, s(1)}, {5, 5, s(2)},
		{10, 20, s(3)},
		{100, 0, s(4)}}}}}
	for m, want := range map[int]int{1: 1, 2: 1, 4: 1, 5: 2, 6: 2, 7: 2, 8: 3, 10: 3, 20: 3, 59: 3, 61: 4, 100: 4,
		1 << 20: 4} {
		if got, ok := ph.Lookup(k, m); !ok || got.BM != want {
			t.Errorf("m=%d: rule %d, want %d", m, got.BM, want)
		}
	}
	if _, ok := ph.Lookup(plans.WeightKey{N: 1, K: 2, Type: "f32"}, 1); ok {
		t.Error("an unknown weight has a schedule")
	}
	if n := testing.AllocsPerRun(100, func() { p.Decode.Lookup(k, 7) }); n != 0 {
		t.Errorf("Lookup allocates %v times", n)
	}
}

func TestValidateNames(t *testing.T) {
	h := hosttest.Cores(t, 2, "avx2", "avx512")
	for want, change := range map[string]func(*plans.Plan){
		"MR 40":        func(p *plans.Plan) { p.Prefill.Tables[0].Rules[0].Schedule.Kernel.MR = 40 },
		"bm is 0":      func(p *plans.Plan) { p.Prefill.Tables[0].Rules[0].Schedule.BM = 0 },
		"bn is -64":    func(p *plans.Plan) { p.Prefill.Tables[0].Rules[0].Schedule.BN = -64 },
		"bk is 7":      func(p *plans.Plan) { p.Decode.Tables[0].Rules[0].Schedule.BK = 7 },
		"bk is -32":    func(p *plans.Plan) { p.Decode.Tables[0].Rules[0].Schedule.BK = -32 },
		"belong to no": func(p *plans.Plan) { p.Decode.PUs = topotree.NewCPUSet(5) },
		"ways 3x1": func(p *plans.Plan) {
			p.Decode.Tables[0].Rules[0].Schedule.WaysM, p.Decode.Tables[0].Rules[0].Schedule.WaysN = 3, 1
		},
		"ways -1x-2 are out of range": func(p *plans.Plan) {
			p.Decode.Tables[0].Rules[0].Schedule.WaysM, p.Decode.Tables[0].Rules[0].Schedule.WaysN = -1, -2
		},
		"seq_max is 0":  func(p *plans.Plan) { p.SeqMax = 0 },
		"batch_max":     func(p *plans.Plan) { p.BatchMax = 1 << 30 },
		"chunk is -1":   func(p *plans.Plan) { p.Chunk = -1 },
		"KV cache type": func(p *plans.Plan) { p.KV = 9 },
		"version 9":     func(p *plans.Plan) { p.Version = 9 },
		"the name":      func(p *plans.Plan) { p.Name = "../../x" },
		"0 ranks":       func(p *plans.Plan) { p.Ranks = nil },
		"tables for":    func(p *plans.Plan) { p.Prefill.Tables = p.Prefill.Tables[1:] },
		"table of": func(p *plans.Plan) {
			p.Prefill.Tables[0], p.Prefill.Tables[1] = p.Prefill.Tables[1],
				p.Prefill.Tables[0]
		},
		"must start after": func(p *plans.Plan) { p.Prefill.Tables[0].Rules[1].MLo = 1 },
		"last rule": func(p *plans.Plan) {
			rules := p.Prefill.Tables[0].Rules
			rules[len(rules)-1].MHi = 1 << 19
		},
		"0 rules":         func(p *plans.Plan) { p.Prefill.Tables[0].Rules = nil },
		"unknown compute": func(p *plans.Plan) { p.Weights[0].Compute = 9 },
		"reads f16":       func(p *plans.Plan) { p.Prefill.Tables[0].Rules[0].Schedule.Kernel.B = microkernel.F16 },
		"widen":           func(p *plans.Plan) { p.Prefill.Tables[0].Rules[0].Schedule.Widen = true },
		"pack: a slice": func(p *plans.Plan) {
			s := &p.Prefill.Tables[0].Rules[0].Schedule
			s.Pack, s.BM = true, s.Kernel.MR<<15
		},
		"hidden": func(p *plans.Plan) { p.Model.Hidden = -5 },
	} {
		p := plantest.Default(t, h, plantest.Llama160M("f32"), "")
		change(p)
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want a refusal that names %q, got %v", want, err)
		}
	}
}

// TestScheduleText checks that a written schedule is read back, whichever of its parts are set.
func TestScheduleText(t *testing.T) {
	h := hosttest.Cores(t, 2, "avx2", "avx512")
	p := plantest.Default(t, h, plantest.Llama160M("q8_0"), "")
	for _, table := range p.Prefill.Tables {
		for _, r := range table.Rules {
			for _, pack := range []bool{false, true} {
				s := r.Schedule
				s.Pack, s.WaysM, s.WaysN = pack, 1, 2
				text, err := profiles.EncodeYAML(plans.Table{WeightKey: table.WeightKey,
					Rules: []plans.Rule{{1, 0, s}}})
				if err != nil {
					t.Fatal(err)
				}
				var got plans.Table
				if err := profiles.DecodeYAML(text, &got); err != nil || got.Rules[0].Schedule != s {
					t.Fatalf("%s reads back as %+v, %v", s, got.Rules, err)
				}
			}
		}
	}
}

// TestPUsOfFiles checks that lists of PUs which no set can hold are refused when a plan is decoded.
func TestPUsOfFiles(t *testing.T) {
	for text, want := range map[string]string{
		"pus: 0-3,8": "", "pus: 8,0-3": "", "pus: 0,1000000000": "CPU 1000000000 is beyond the limit",
		"pus: -1": "is not a CPU number", "pus: 3-1": "is descending", "pus: [0, 1]": "",
	} {
		var r plans.Rank
		err := profiles.DecodeYAML([]byte(text+"\nnuma_node: 0\n"), &r)
		switch {
		case text == "pus: [0, 1]":
			if err == nil {
				t.Errorf("%s is read as %s", text, r.PUs)
			}
		case want == "" && (err != nil || r.PUs.String() != "0-3,8"):
			t.Errorf("%s is read as %s, %v", text, r.PUs, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
