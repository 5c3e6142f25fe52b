package profiles

import (
	"fmt"

	"sandwich/microkernel"
)

// PairRates are two multiply-add peaks of one instruction set, measured on one machine with equally
// many PUs at work. Whether they are worth their rounding is for plans/heuristic to say.
type PairRates struct {
	F32, BF16 float64 // FLOP/s
	PUs       int
}

// PairRates reads the rates of an instruction set, with the fewest PUs that both were measured
// with: their ratio is a matter of a core's ports, and more PUs only add the noise of their
// meeting. Each is the best of its samples: what else runs on a machine slows a core down and never
// speeds it up, and medians of 1 ms samples on a machine with twice as much work as cores gave
// ratios of 0.47 to 0.89 for 0.51. It is false where either was not measured; what is quoted or
// assumed does not count.
func (p *Profile) PairRates(isa microkernel.ISA) (PairRates, bool) {
	rates := map[int]*PairRates{}
	for _, c := range p.Ceilings {
		if c.Kind != Compute || c.Device != "" || c.ISA != isa.String() || !c.Measured() {
			continue
		}
		if rates[c.PUs] == nil {
			rates[c.PUs] = &PairRates{PUs: c.PUs}
		}
		switch c.Type {
		case microkernel.ComputeF32.String():
			rates[c.PUs].F32 = max(c.Median, c.Max)
		case microkernel.ComputeBF16.String():
			rates[c.PUs].BF16 = max(c.Median, c.Max)
		}
	}
	var best PairRates
	for _, r := range rates {
		if r.F32 > 0 && r.BF16 > 0 && (best.PUs == 0 || r.PUs < best.PUs) {
			best = *r
		}
	}
	return best, best.PUs > 0
}

// String compares the rates, as in "bf16 reaches 405.6 GFLOP/s on 1 PU, 1.97 times the 205.5 of
// f32".
func (r PairRates) String() string {
	pus := "PU"
	if r.PUs > 1 {
		pus = "PUs"
	}
	return fmt.Sprintf("bf16 reaches %.4g GFLOP/s on %d %s, %.2f times the %.4g of f32", r.BF16/1e9, r.PUs, pus,
		r.BF16/r.F32, r.F32/1e9)
}
