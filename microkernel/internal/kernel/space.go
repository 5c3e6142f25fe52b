package kernel

import (
	"slices"

	"sandwich/microkernel/qtype"
)

// Space lists the kernels of one instruction set, compute path and weight type that the features
// allow: every register tile that does not spill and is worth trying, in every form. The order is
// deterministic. Tiles are listed without software prefetch; its distance is an axis of its own,
// see WithPrefetch.
func Space(host Features, isa ISA, c Compute, b qtype.Type, keep func(Spec) bool) []Spec {
	if !isa.Generates() {
		s := Spec{ISA: isa, Compute: c, B: b, MR: 4, NR: qtype.PanelWidth, KU: min(b.Block(), MaxKU)}
		if !keep(s) || s.Validate() != nil {
			return nil
		}
		return []Spec{s}
	}
	var out []Spec
	for dot := range Dots {
		for _, form := range formsInOrder(isa) {
			for ku := 1; ku <= MaxKU; ku *= 2 {
				s := Spec{ISA: isa, Compute: c, B: b, KU: ku, Form: form, Dot: dot}
				if s.validateCompute() == nil {
					out = s.appendTiles(out, host, keep)
				}
			}
		}
	}
	return out
}

// formsInOrder are those of an instruction set.
func formsInOrder(isa ISA) []Form {
	forms := slices.Clone(isa.Target().Forms())
	slices.Sort(forms)
	return forms
}

// appendTiles appends the register tiles of a spec that has none yet.
func (s Spec) appendTiles(out []Spec, host Features, keep func(Spec) bool) []Spec {
	for s.NR = qtype.PanelWidth; s.NR <= MaxNR; s.NR += qtype.PanelWidth {
		for s.MR = 1; s.MR <= MaxMR; s.MR++ {
			if keep(s) && host.Has(s.Needs()) && s.worthTrying() && s.validate() == nil {
				out = append(out, s)
			}
		}
	}
	return out
}

// worthTrying leaves out what cannot win: panel counts that no matrix divides into well, unrolling
// beyond the instruction cache, and tiles that keep so few accumulators that every FMA waits for
// the one before.
func (s Spec) worthTrying() bool {
	v := s.NR / qtype.PanelWidth
	if v > 4 && v != 6 && v != 8 {
		return false
	}
	if s.MatrixUnit() {
		return s.ISA.Target().Worth(s)
	}
	if s.Form == Once && s.MR < leastOnce {
		return false // what a lower tile shares is little
	}
	if !s.B.Quantized() && (s.steps() > 8 || s.steps()*s.MR*s.NR/s.ISA.Lanes() > 256) {
		return false
	}
	const latency, ports = 4, 2
	return s.MR*s.NR/s.ISA.Lanes() >= latency*ports || s.MR <= 4
}

// leastOnce is the least rows of tiles of form Once.
const leastOnce = 4

// steps is the multiply-adds of an accumulator in an iteration of the main loop.
func (s Spec) steps() int {
	if s.Compute == ComputeBF16 {
		return s.KU / 2
	}
	return s.KU
}

// AskOnce is the greatest distance in bytes at which a kernel of amd64 asks for each line only
// once, into the first-level cache: from farther ahead it asks again there.
const AskOnce = 1024

// WithPrefetch returns the spec with a software prefetch of the packed weight at the given distance
// in bytes.
func (s Spec) WithPrefetch(bytes int) Spec {
	s.Prefetch, s.Spread = bytes, false
	return s
}

// WithSpread returns the spec with its prefetch spread over all row tiles.
func (s Spec) WithSpread() Spec {
	s.Prefetch, s.Spread = 0, true
	return s
}
