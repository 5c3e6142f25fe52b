package profiles

import (
	"fmt"

	"sandwich/microkernel"
)

// AttendRates is what the attention of one core reaches on blocks in its caches, by what it adds up
// by: FLOP/s of its two products. Whether a dot product is worth its rounding is for
// plans/heuristic to say.
type AttendRates map[microkernel.AttentionDot]float64

// AttendType is the type of a ceiling of attention by a dot product.
func AttendType(d microkernel.AttentionDot) string { return "attend-" + d.String() }

// AttendStepType is the same of one query head of one token, the least that generation has.
func AttendStepType(d microkernel.AttentionDot) string { return AttendType(d) + "-step" }

// AttendCache is the type of cache that the attention of a dot product is measured on: half
// precision, but for integers, which read no other than q8_0.
func AttendCache(d microkernel.AttentionDot) microkernel.KVType {
	if d.Reads(microkernel.KVF16) != nil {
		return microkernel.KVQ8
	}
	return microkernel.KVF16
}

// AttendRates reads what was measured of the attention of prompts on one PU with the kernels of an
// instruction set. Each is the best of its samples, as in PairRates. What is quoted or assumed does
// not count.
func (p *Profile) AttendRates(isa microkernel.ISA) AttendRates { return p.attendRates(isa, AttendType) }

// AttendStepRates reads the same of the attention of single tokens.
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

// Gain compares a dot product with float32, as in "attention by tdpbf16 reaches 812.4 GFLOP/s on a
// core, 4.13 times the 196.7 of f32".
func (r AttendRates) Gain(d microkernel.AttentionDot) string {
	f32 := r[microkernel.AttendF32]
	return fmt.Sprintf("attention by %s reaches %.4g GFLOP/s on a core, %.2f times the %.4g of f32", d, r[d]/1e9,
		r[d]/f32, f32/1e9)
}
