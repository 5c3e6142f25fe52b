package heuristic

import (
	"math"
	"strings"
	"testing"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/plans/bundle"
	"sandwich/plans/internal/hosttest"
	"sandwich/profiles"
)

// unitHost is a machine with AMX whose rates were measured, in GOP/s on one PU.
func unitHost(t *testing.T, f32, unit, vectors, kernel, vectorKernel float64) *profiles.Profile {
	h := hosttest.Cores(t, 2, "avx2", "avx512", "avx512_vnni", "amx_int8")
	for typ, rate := range map[string]float64{"f32": f32, "int8": unit, microkernel.Int8Vectors: vectors,
		microkernel.Int8Kernel: kernel, microkernel.Int8VectorKernel: vectorKernel} {
		if rate != 0 {
			h.Ceilings = append(h.Ceilings, profiles.Ceiling{Kind: profiles.Compute, ISA: "avx512", Type: typ, PUs: 1,
				Figure: profiles.Figure{Median: rate * 1e9, Max: rate * 1e9, N: 3, Unit: "OP/s"}})
		}
	}
	return h
}

// rowsOnUnit are the least and the most rows that kernels on a matrix unit multiply; 0 and 0 where
// there are none.
func rowsOnUnit(p *plans.Plan) (lo, hi int) {
	for _, t := range p.Prefill.Tables {
		for _, r := range t.Rules {
			if !r.Schedule.Kernel.MatrixUnit() {
				continue
			}
			if lo == 0 || r.MLo < lo {
				lo = r.MLo
			}
			if hi = r.MHi; hi == 0 {
				hi = math.MaxInt
			}
		}
	}
	return lo, hi
}

// TestUnitByMeasuredRate checks that prompts use the matrix unit if its kernels were measured to be
// faster than those on vectors, that single rows do not, and that the arithmetic of weights does
// not change.
func TestUnitByMeasuredRate(t *testing.T) {
	inf := math.Inf(1)
	for name, c := range map[string]struct {
		f32, unit, vectors, kernel, vectorKernel float64
		want                                     bool
	}{
		"twice as fast":       {136, 4074, 540, 800, 400, true},
		"as fast":             {136, 4074, 540, 420, 400, false},
		"slower":              {136, 4074, 540, 250, 400, false},
		"emulated":            {136, 1, 540, 0.5, 400, false},
		"not measured":        {136, 4074, 540, 0, 400, false},
		"vectors are unknown": {136, 4074, 0, 1000, 400, false},
		"no kernel of them":   {136, 4074, 540, 1000, 0, false},
		"nothing is known":    {0, 0, 0, 0, 0, false},
		"without end":         {136, inf, 540, inf, 400, true},
		"f32 without end":     {inf, 4074, 540, 1000, 400, true}, // the kernels of both are known
	} {
		p := mustDefault(t, unitHost(t, c.f32, c.unit, c.vectors, c.kernel, c.vectorKernel), llama160m("q8_0"),
			Options{})
		lo, hi := rowsOnUnit(p)
		if c.want != (hi == math.MaxInt) || c.want && lo < 2 || !c.want && lo != 0 {
			t.Errorf("%s: rows from %d to %d are on the unit", name, lo, hi)
		}
		for _, w := range p.Weights {
			if w.Compute != microkernel.ComputeInt8 {
				t.Errorf("%s: weight %v", name, w)
			}
		}
		checkDefaultWork(t, p, 2)
		b := bundle.Bundle{Plan: *p, Host: *unitHost(t, c.f32, c.unit, c.vectors, c.kernel, c.vectorKernel)}
		if said := b.Unit(); c.want != strings.Contains(said, "matrix unit") {
			t.Errorf("%s: the plan says %q", name, said)
		}
	}
}

// TestSuperblocksWithUnit checks that activations share scales over 256 values unless a matrix
// unit, which has no such kernels, is or may be faster.
func TestSuperblocksWithUnit(t *testing.T) {
	for kernel, want := range map[float64]microkernel.Compute{0: microkernel.ComputeInt8,
		400: microkernel.ComputeInt8Superblock, 800: microkernel.ComputeInt8} {
		h := unitHost(t, 136, 4074, 540, kernel, 400)
		for _, w := range mustDefault(t, h, llama160m("q4_k"), Options{}).Weights {
			if w.Compute != want {
				t.Errorf("a unit of %v times the rate of vectors: %+v", kernel/400, w)
			}
		}
	}
}

// TestSuperblocksRefused checks that a path is refused by name where no weight or kernel has it.
func TestSuperblocksRefused(t *testing.T) {
	for want, c := range map[string]struct {
		isa []string
		typ string
	}{
		"is for models with weights in blocks of 256": {[]string{"avx2"}, "q8_0"},
		"has no kernels for it":                       {[]string{"neon", "dotprod"}, "q4_k"},
	} {
		_, err := Default(hosttest.Cores(t, 2, c.isa...), llama160m(c.typ), Options{Compute: "int8-256"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v %s: %v", c.isa, c.typ, err)
		}
	}
}

// TestUnitOfEveryType checks that prompts of each weight type use a fast unit, and that q2_k, whose
// scales and offsets cost more time, needs a faster one.
func TestUnitOfEveryType(t *testing.T) {
	for _, typ := range []string{"q8_0", "q4_0", "q4_k", "q6_k", "q3_k"} {
		fast := mustDefault(t, unitHost(t, 136, 4074, 540, 800, 400), llama160m(typ), Options{})
		if _, most := rowsOnUnit(fast); most == 0 {
			t.Errorf("%s: a fast unit is not used", typ)
		}
	}
	for kernel, want := range map[float64]bool{800: false, 4000: true} { // q2_k has offsets of halves
		p := mustDefault(t, unitHost(t, 136, 4074, 540, kernel, 400), llama160m("q2_k"), Options{})
		if _, most := rowsOnUnit(p); want != (most > 0) {
			t.Errorf("q2_k, where the unit is %v times as fast in q8_0: rows up to %d are on it", kernel/400, most)
		}
	}
}

// TestKeptSumsByMeasuredRate checks that weights use the paths whose sums stay in tiles if their
// kernels were measured to be faster than the default by the gain that their kind requires.
func TestKeptSumsByMeasuredRate(t *testing.T) {
	for _, c := range []struct {
		typ   string
		rates map[string]float64 // GOP/s on one PU
		want  microkernel.Compute
	}{
		{"q4_k", map[string]float64{"int8-k-kernel": 1300, "int8-block-kernel": 1000, "int8-256-kernel": 500},
			microkernel.ComputeInt8K},
		{"q4_k", map[string]float64{"int8-k-kernel": 1300, "int8-block-kernel": 500, "int8-256-kernel": 1200},
			microkernel.ComputeInt8},
		{"q4_k", map[string]float64{"int8-k-kernel": 1300}, microkernel.ComputeInt8},
		{"q8_0", map[string]float64{"int8-k-kernel": 1300, "int8-block-kernel": 1000, "int8-256-kernel": 500},
			microkernel.ComputeInt8},
		{"bf16", map[string]float64{"bf16": 270, "bf16-tile-kernel": 600}, microkernel.ComputeBF16Tile},
		{"bf16", map[string]float64{"bf16": 540, "bf16-tile-kernel": 600}, microkernel.ComputeBF16},
		{"bf16", map[string]float64{"bf16": 140, "bf16-tile-kernel": 150}, microkernel.ComputeF32},
		{"bf16", map[string]float64{"bf16": 140}, microkernel.ComputeF32},
	} {
		h := unitHost(t, 136, 4074, 540, 800, 400)
		h.Host.ISA = append(h.Host.ISA, "avx512_bf16")
		for typ, rate := range c.rates {
			h.Ceilings = append(h.Ceilings, profiles.Ceiling{Kind: profiles.Compute, ISA: "avx512", Type: typ, PUs: 1,
				Figure: profiles.Figure{Median: rate * 1e9, Max: rate * 1e9, N: 3, Unit: "OP/s"}})
		}
		p := mustDefault(t, h, llama160m(c.typ), Options{})
		for _, w := range p.Weights {
			if w.Compute != c.want {
				t.Errorf("%s at %v: %+v, want %s", c.typ, c.rates, w, c.want)
			}
		}
		checkDefaultWork(t, p, 2)
	}
}

// TestOverlapByMeasuredRate checks that kernels that unpack during products are chosen, for the
// numbers of rows that have them, if they were measured to be at least as fast as those that unpack
// before.
func TestOverlapByMeasuredRate(t *testing.T) {
	for overlap, want := range map[float64]bool{0: false, 1200: false, 1300: true, 1400: true} {
		h := unitHost(t, 136, 4074, 540, 800, 400)
		for typ, rate := range map[string]float64{"int8-k-kernel": 1300, "int8-block-kernel": 1000,
			"int8-256-kernel": 500, microkernel.Int8KOverlapKernel: overlap} {
			if rate > 0 {
				f := profiles.Figure{Median: rate * 1e9, Max: rate * 1e9, N: 3, Unit: "OP/s"}
				h.Ceilings = append(h.Ceilings, profiles.Ceiling{Kind: profiles.Compute, ISA: "avx512", Type: typ,
					PUs: 1, Figure: f})
			}
		}
		p := mustDefault(t, h, llama160m("q4_k"), Options{})
		for _, table := range p.Prefill.Tables {
			for _, r := range table.Rules {
				many := r.MHi == 0 || r.MHi >= keptOverlap
				if k := r.Schedule.Kernel; k.Overlaps() != (want && k.MatrixUnit() && many) {
					t.Errorf("overlap at %v: rows from %d use %s", overlap, r.MLo, k)
				}
			}
		}
	}
}

// TestIntegersOnSME checks that K-quants use exact integer sums on SME if a kernel of outer
// products was measured to be faster with them. One row uses a NEON kernel of the same path.
func TestIntegersOnSME(t *testing.T) {
	for rate, want := range map[float64]microkernel.Compute{1000: microkernel.ComputeInt8,
		1300: microkernel.ComputeInt8K} {
		h := hosttest.Cores(t, 2, "neon", "dotprod", "i8mm", "sme", "sme512", "sme_i8i32")
		for typ, rate := range map[string]float64{"f32": 136, "int8": 4000, microkernel.Int8Vectors: 500,
			microkernel.Int8Kernel: 900, microkernel.Int8VectorKernel: 400, microkernel.Int8BlockKernel: 1000,
			microkernel.Int8KKernel: rate} {
			f := profiles.Figure{Median: rate * 1e9, Max: rate * 1e9, N: 3, Unit: "OP/s"}
			h.Ceilings = append(h.Ceilings, profiles.Ceiling{Kind: profiles.Compute, ISA: "neon", Type: typ, PUs: 1,
				Figure: f})
		}
		p := mustDefault(t, h, llama160m("q4_k"), Options{})
		for _, w := range p.Weights {
			if w.Compute != want {
				t.Errorf("int8-k at %v: %+v, want %s", rate, w, want)
			}
		}
		lo, hi := rowsOnUnit(p)
		if lo < 2 || hi != math.MaxInt {
			t.Errorf("int8-k at %v: rows from %d to %d are on the unit", rate, lo, hi)
		}
		checkDefaultWork(t, p, 2)
	}
}

// TestSumsByMeasuredRate checks that weights whose dot products fit sixteen bits use exact integer
// sums on vectors if their kernels were measured to be faster with many rows and with one, for
// every instruction set.
func TestSumsByMeasuredRate(t *testing.T) {
	for name, c := range map[string]struct {
		typ                                string
		many, step, group, once, stepGroup float64
		want                               microkernel.Compute
	}{
		"faster":            {"q2_k", 290, 165, 223, 220, 131, microkernel.ComputeInt8K},
		"once is faster":    {"q2_k", 290, 165, 223, 280, 131, microkernel.ComputeInt8Superblock},
		"one row is slower": {"q3_k", 290, 120, 250, 0, 126, microkernel.ComputeInt8Superblock},
		"not measured":      {"q3_k", 0, 0, 0, 0, 0, microkernel.ComputeInt8Superblock},
		"another type":      {"q4_k", 290, 165, 223, 220, 131, microkernel.ComputeInt8Superblock},
	} {
		h := hosttest.Cores(t, 2, "avx2", "avx512", "avx512_vnni")
		for _, k := range microkernel.VectorIntegers() {
			for typ, rate := range map[string]float64{k.Many: c.many, k.Step: c.step, k.Group: c.group, k.Once: c.once,
				k.GroupStep: c.stepGroup} {
				f := profiles.Figure{Median: rate * 1e9, Max: rate * 1e9, N: 3, Unit: "OP/s"}
				if rate > 0 {
					h.Ceilings = append(h.Ceilings, profiles.Ceiling{Kind: profiles.Compute, ISA: "avx512", Type: typ,
						PUs: 1, Figure: f})
				}
			}
		}
		for _, isa := range []string{"", "avx2"} {
			for _, w := range mustDefault(t, h, llama160m(c.typ), Options{ISA: isa}).Weights {
				if w.Compute != c.want {
					t.Errorf("%s, isa %q: %+v, want %s", name, isa, w, c.want)
				}
			}
		}
		open := SumsOpen(h, llama160m(c.typ), Options{})
		if open != (c.typ != "q4_k") || SumsKnown(h) != (c.many > 0 && c.once > 0) {
			t.Errorf("%s: open %v, known %v", name, open, SumsKnown(h))
		}
		said := SumsChoice(h, llama160m(c.typ))
		if (said != "") != (open && c.many > 0) || said != "" && !strings.Contains(said, "use "+c.want.String()+":") {
			t.Errorf("%s: %q", name, said)
		}
		if SumsOpen(h, llama160m(c.typ), Options{Compute: "int8"}) {
			t.Errorf("%s: open with a path that the user names", name)
		}
	}
}
