package profiles

import (
	"fmt"

	"sandwich/microkernel"
)

// PairRates holds two multiply-add peaks of one instruction set, measured with the same number of
// PUs. plans/heuristic decides whether bf16 is worth its rounding.
type PairRates struct {
	F32, BF16 float64 // FLOP/s
	PUs       int
}

// PairRates returns the measured rates of an instruction set with the smallest number of PUs for
// which both exist. Each is the best of its samples, since other load only slows a core down. It
// returns false if either was not measured; quoted and assumed figures are ignored.
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

// String compares the rates, for example "bf16 reaches 405.6 GFLOP/s on 1 PU, 1.97 times the 205.5
// of f32".
func (r PairRates) String() string {
	pus := "PU"
	if r.PUs > 1 {
		pus = "PUs"
	}
	return fmt.Sprintf("bf16 reaches %.4g GFLOP/s on %d %s, %.2f times the %.4g of f32", r.BF16/1e9, r.PUs, pus,
		r.BF16/r.F32, r.F32/1e9)
}
