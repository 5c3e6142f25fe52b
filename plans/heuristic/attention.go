package heuristic

import (
	"fmt"
	"slices"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/roofline"
)

// attendGain is the minimum gain in prompt throughput over float32 for which a less exact dot
// product is chosen for attention. Measured gains are far from it on either side.
const attendGain = 1.3

// attendStepLoss is the minimum throughput on single tokens, relative to float32, for which such a
// dot product is chosen.
const attendStepLoss = 0.75

// attention returns the dot product of a plan's attention: the one in the options, else the fastest
// that is worth its rounding, else float32.
func (h host) attention(option string, p *plans.Plan) (microkernel.AttentionDot, error) {
	if option == "" || option == "auto" {
		if !h.mayRound(p.KV, pathsOf(p.Weights)) {
			return microkernel.AttendF32, nil
		}
		return h.bestAttention(p.KV), nil
	}
	d, err := microkernel.ParseAttentionDot(option)
	if err != nil {
		return d, err
	}
	for _, isa := range h.workers() {
		if !d.On(isa, h.features) {
			return d, fmt.Errorf("attention by %s: %s on this CPU (%s) has no such dot product: leave --attention "+
				"out", d, isa,
				h.features)
		}
	}
	return d, d.Reads(p.KV)
}

// bestAttention returns the dot product that the measured rates favor, or float32 if some worker
// lacks it: all workers must round alike.
func (h host) bestAttention(kv microkernel.KVType) microkernel.AttentionDot {
	d := bestAttention(kv, h.attend, h.steps)
	for _, isa := range h.workers() {
		if !d.On(isa, h.features) {
			return microkernel.AttendF32
		}
	}
	return d
}

// mayRound reports whether attention may use a dot product other than float32: some product is not
// computed in float32 already, and the CPU has one for the cache type. If all products use float32
// or the cache is float32, exact results are wanted.
func (h host) mayRound(kv microkernel.KVType, paths []microkernel.Compute) bool {
	return slices.ContainsFunc(paths, func(c microkernel.Compute) bool {
		return c != microkernel.ComputeF32
	}) && slices.ContainsFunc(alternatives(kv), func(d microkernel.AttentionDot) bool {
		return h.isa.Generates() && d.On(h.isa, h.features)
	})
}

// alternatives returns the dot products other than float32 whose rates were measured with a type of
// cache. Bfloat16 products are measured with half precision only: with q8_0 they are slower on
// single tokens.
func alternatives(kv microkernel.KVType) (dots []microkernel.AttentionDot) {
	for _, d := range microkernel.AttentionDots() {
		if d != microkernel.AttendF32 && profiles.AttentionCache(d) == kv {
			dots = append(dots, d)
		}
	}
	return dots
}

func pathsOf(weights []plans.WeightPlan) (paths []microkernel.Compute) {
	for _, w := range weights {
		paths = append(paths, w.Compute)
	}
	return paths
}

// bestAttention returns the fastest dot product for a type of cache that reaches attendGain on
// prompts (r) and attendStepLoss on single tokens (steps).
func bestAttention(kv microkernel.KVType, r, steps roofline.AttentionRates) microkernel.AttentionDot {
	best, minimum := microkernel.AttendF32, attendGain*r[microkernel.AttendF32]
	for _, d := range alternatives(kv) {
		if minimum > 0 && r[d] >= max(minimum, r[best]) && steps[d] > 0 &&
			steps[d] >= attendStepLoss*steps[microkernel.AttendF32] {
			best = d
		}
	}
	return best
}
