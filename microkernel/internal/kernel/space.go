package kernel

import (
	"slices"

	"sandwich/microkernel/qtype"
)

// Space lists the kernels of one instruction set, compute path and weight type that the features
// allow: every register tile that does not spill registers and is not dominated, in every form. The
// order is deterministic. keep is asked first and may reject specs cheaply. Specs are listed
// without software prefetch; see WithPrefetch and WithSpread.
func Space(host Features, isa ISA, c Compute, b qtype.Type, keep func(Spec) bool) []Spec {
	if !isa.Generates() {
		s := Spec{ISA: isa, Compute: c, B: b, MR: 4, NR: qtype.PanelWidth, KU: min(b.Block(), MaxKU)}
		if !keep(s) || s.Validate() != nil {
			return nil
		}
		return []Spec{s}
	}
	var out []Spec
	for dot := range dots {
		for _, form := range formsInOrder(isa) {
			for ku := 1; ku <= MaxKU; ku *= 2 {
				s := Spec{ISA: isa, Compute: c, B: b, KU: ku, Form: form, Dot: Dot(dot)}
				if s.validateCompute() == nil {
					out = s.appendTiles(out, host, keep)
				}
			}
		}
	}
	return out
}

// formsInOrder returns the forms of an instruction set in ascending order.
func formsInOrder(isa ISA) []Form {
	forms := slices.Clone(isa.Target().Forms)
	slices.Sort(forms)
	return forms
}

// appendTiles appends the specs of all register tiles of s, whose MR and NR are ignored.
func (s Spec) appendTiles(out []Spec, host Features, keep func(Spec) bool) []Spec {
	for s.NR = qtype.PanelWidth; s.NR <= MaxNR; s.NR += qtype.PanelWidth {
		for s.MR = 1; s.MR <= s.maxMR(); s.MR++ {
			if keep(s) && host.Has(s.Needs()) && !s.dominated() && s.validate() == nil {
				out = append(out, s)
			}
		}
	}
	return out
}

// dominated reports whether Space prunes the spec: its panel count divides few matrices well, its
// unrolling exceeds the instruction cache, or its tile has so few accumulators that every FMA waits
// for the one before.
func (s Spec) dominated() bool {
	v := s.NR / qtype.PanelWidth
	if v > 4 && v != 6 && v != 8 {
		return true
	}
	if s.MatrixUnit() {
		return s.ISA.Target().GEMM.Dominated(s)
	}
	if s.Form == DequantOnce && s.MR < minDequantOnceRows {
		return true // smaller tiles share too little
	}
	if !s.B.Quantized() && (s.steps() > 8 || s.steps()*s.MR*s.NR/s.ISA.Lanes() > 256) {
		return true
	}
	const latency, ports = 4, 2
	return s.MR*s.NR/s.ISA.Lanes() < latency*ports && s.MR > 4
}

// minDequantOnceRows is the smallest MR of form DequantOnce in a Space.
const minDequantOnceRows = 4

// steps returns the multiply-adds of an accumulator in an iteration of the main loop.
func (s Spec) steps() int {
	if s.Compute == ComputeBF16 {
		return s.KU / 2
	}
	return s.KU
}
