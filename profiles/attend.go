package profiles

import (
	"fmt"

	"sandwich/microkernel"
)

// AttendRates holds the FLOP/s of the attention of one core on cached blocks, by dot product.
// plans/heuristic decides whether a dot product is worth its rounding.
type AttendRates map[microkernel.AttentionDot]float64

// AttendType returns the ceiling type of attention with a dot product on prompts.
func AttendType(d microkernel.AttentionDot) string { return "attend-" + d.String() }

// AttendStepType returns the ceiling type of attention with one query head of one token, the
// smallest job of generation.
func AttendStepType(d microkernel.AttentionDot) string { return AttendType(d) + "-step" }

// AttendCache returns the cache type with which the attention of a dot product is measured: f16, or
// q8_0 for integer dot products, which read no other type.
func AttendCache(d microkernel.AttentionDot) microkernel.KVType {
	if d.Reads(microkernel.KVF16) != nil {
		return microkernel.KVQ8
	}
	return microkernel.KVF16
}

// AttendRates returns the measured rates of attention on prompts with one PU and the kernels of an
// instruction set. Each is the best of its samples; see PairRates. Quoted and assumed figures are
// ignored.
func (p *Profile) AttendRates(isa microkernel.ISA) AttendRates { return p.attendRates(isa, AttendType) }

// AttendStepRates returns the measured rates of attention on single tokens; see AttendRates.
func (p *Profile) AttendStepRates(isa microkernel.ISA) AttendRates {
	return p.attendRates(isa, AttendStepType)
}

func (p *Profile) attendRates(isa microkernel.ISA, typeOf func(microkernel.AttentionDot) string) AttendRates {
	rates := AttendRates{}
	for _, c := range p.Ceilings {
		if c.Kind != Compute || c.Device != "" || c.ISA != isa.String() || c.PUs != 1 || !c.Measured() {
			continue
		}
		for _, d := range microkernel.AttentionDots() {
			if c.Type == typeOf(d) {
				rates[d] = max(rates[d], c.Median, c.Max)
			}
		}
	}
	return rates
}

// Gain compares a dot product with float32, for example "attention by tdpbf16 reaches 812.4 GFLOP/s
// on a core, 4.13 times the 196.7 of f32".
func (r AttendRates) Gain(d microkernel.AttentionDot) string {
	f32 := r[microkernel.AttendF32]
	return fmt.Sprintf("attention by %s reaches %.4g GFLOP/s on a core, %.2f times the %.4g of f32", d, r[d]/1e9,
		r[d]/f32, f32/1e9)
}
