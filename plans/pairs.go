package plans

import (
	"fmt"

	"sandwich/microkernel"
	"sandwich/profiles"
)

// pairGain is how many times the float32 rate the dot products of bf16 must reach to be worth their
// rounding. CPUs make them at half, the same or twice the rate, so that the threshold lies far from
// all that a noisy measurement says of either.
const pairGain = 1.3

// PairRates are two multiply-add peaks of one instruction set, measured on one machine with equally
// many PUs at work.
type PairRates struct {
	F32, BF16 float64 // FLOP/s
	PUs       int
}

// Pairs reads the rates of an instruction set from a profile, with the fewest PUs that both were
// measured with: their ratio is a matter of a core's ports, and more PUs only add the noise of
// their meeting. Each is the best of its samples: what else runs on a machine slows a core down and
// never speeds it up, and medians of 1 ms samples on a machine with twice as much work as cores
// gave ratios of 0.47 to 0.89 for 0.51. It is false where either was not measured; what is quoted
// or assumed does not count.
func Pairs(p *profiles.Profile, isa microkernel.ISA) (PairRates, bool) {
	rates := map[int]*PairRates{}
	for _, c := range p.Ceilings {
		if c.Kind != profiles.Compute || c.Device != "" || c.ISA != isa.String() || !c.Measured() {
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

// Worthwhile says that bf16 weights should be multiplied in pairs.
func (r PairRates) Worthwhile() bool { return r.F32 > 0 && r.BF16 >= pairGain*r.F32 }

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

// Choice says in words which path bf16 weights take by these rates, and why.
func (r PairRates) Choice() string {
	if r.Worthwhile() {
		return fmt.Sprintf("bf16 weights are multiplied by dot products of bf16, with rounding of their own "+
			"(--compute f32 is exact): %s", r)
	}
	return fmt.Sprintf("bf16 weights are multiplied in float32: %s, and %g times would be worth the rounding", r,
		pairGain)
}

// PairsOpen says that the paths of a model depend on PairRates: it has bf16 weights, and the CPU
// has the dot products.
func PairsOpen(p *profiles.Profile, s ModelShape, o DefaultOptions) bool {
	th, err := newThumb(p, o)
	return err == nil && (o.Compute == "" || o.Compute == "auto") && s.has(microkernel.BF16) && th.hasPairs()
}

// has says that a product of the model reads weights of a type.
func (s ModelShape) has(t microkernel.WeightType) bool {
	for _, k := range s.Unique() {
		if k.Type == t.String() {
			return true
		}
	}
	return false
}

// hasPairs says that the instruction set has kernels of bf16 dot products on this CPU.
func (th thumb) hasPairs() bool {
	return len(th.candidates(spaceKey{th.isa, microkernel.ComputeBF16, microkernel.BF16})) > 0
}

// Rounding is that of the plan, with the rates behind a path of bf16 where the host's profile has
// them.
func (b *Bundle) Rounding() string {
	why := b.Plan.Rounding()
	if w, ok := b.Plan.inexactWeight(); !ok || w.Compute != microkernel.ComputeBF16 {
		return why
	}
	for _, k := range b.Plan.Kernels() {
		if k.Compute != microkernel.ComputeBF16 {
			continue
		}
		if r, ok := Pairs(&b.Host, k.ISA); ok {
			return why + ": " + r.String()
		}
	}
	return why
}
