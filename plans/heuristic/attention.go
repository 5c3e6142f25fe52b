package heuristic

import (
	"fmt"
	"slices"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/profiles"
)

// attendGain is how many times the rate of float32 a dot product must bring attention to, to be
// worth its rounding. What they were seen to bring lies far from it: 0.8 and less, or 1.7 and more.
const attendGain = 1.3

// attendStepLoss is the least part of float32's rate on single tokens, from the cache, that such a
// dot product keeps. Tiles of which one row was used kept 0.4 of it, dpbf16 on pairs 0.5 to 0.7;
// the multiply-adds that stand for both keep all of it at rest, and 0.8 of it in a bad minute.
const attendStepLoss = 0.75

// attention is what a plan's attention adds up by: what was asked for, else the fastest that is
// worth its rounding, else float32.
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
			return d, fmt.Errorf("attention by %s: %s on this CPU (%s) has no such dot product: leave it out", d, isa,
				h.features)
		}
	}
	return d, d.Reads(p.KV)
}

// bestAttention is what the rates choose, float32 where a worker lacks it: all must round alike.
func (h host) bestAttention(kv microkernel.KVType) microkernel.AttentionDot {
	d := bestAttention(kv, h.attend, h.steps)
	for _, isa := range h.workers() {
		if !d.On(isa, h.features) {
			return microkernel.AttendF32
		}
	}
	return d
}

// workers are the instruction sets of all workers, the main class's first.
func (h host) workers() []microkernel.ISA { return append([]microkernel.ISA{h.isa}, h.beside...) }

// mayRound says that attention may round on its way: that products do already, and the CPU has
// something else than float32 for the cache. Where all weights are multiplied in float32, or the
// cache is float32, somebody wants it exact.
func (h host) mayRound(kv microkernel.KVType, paths []microkernel.Compute) bool {
	return slices.ContainsFunc(paths, func(c microkernel.Compute) bool {
		return c != microkernel.ComputeF32
	}) && slices.ContainsFunc(rivals(kv), func(d microkernel.AttentionDot) bool {
		return h.isa.Generates() && d.On(h.isa, h.features)
	})
}

// rivals are the dot products beside float32 that are worth a thought for a type of cache: those
// whose rates are of it. Bfloat16 has them of half precision: where values of q8_0 have to be
// scaled and rounded one by one, single tokens lose.
func rivals(kv microkernel.KVType) (dots []microkernel.AttentionDot) {
	for _, d := range microkernel.AttentionDots() {
		if d != microkernel.AttendF32 && profiles.AttendCache(d) == kv {
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

// bestAttention is the fastest dot product for a type of cache that is worth its rounding by its
// rates of prompts, and does not take it back by those of single tokens: generation has no other
// arithmetic to go to.
func bestAttention(kv microkernel.KVType, r, steps profiles.AttendRates) microkernel.AttentionDot {
	best, least := microkernel.AttendF32, attendGain*r[microkernel.AttendF32]
	for _, d := range rivals(kv) {
		if least > 0 && r[d] >= max(least, r[best]) && steps[d] > 0 &&
			steps[d] >= attendStepLoss*steps[microkernel.AttendF32] {
			best = d
		}
	}
	return best
}

// AttentionChoice says in words what attention adds up by at these rates, and why.
func AttentionChoice(o Options, r, steps profiles.AttendRates) string {
	kv, _ := o.cache() // which Open has read
	best := bestAttention(kv, r, steps)
	if best == microkernel.AttendF32 {
		return fmt.Sprintf("attention adds up in float32: nothing else is %g times as fast here on prompts and keeps "+
			"%g of its rate on single tokens", attendGain, attendStepLoss)
	}
	return fmt.Sprintf("%s, with rounding of its own (--attention f32 is exact)", r.Gain(best))
}

// cache is the type of the KV cache that the options ask for.
func (o Options) cache() (microkernel.KVType, error) {
	if o.KV == "" {
		return microkernel.KVF16, nil
	}
	return microkernel.ParseKVType(o.KV)
}

// AttentionOpen says that what attention adds up by depends on measured rates.
func AttentionOpen(p *profiles.Profile, s plans.ModelShape, o Options) bool {
	h, err := o.mainHost(p)
	if err != nil || o.Attend != "" && o.Attend != "auto" {
		return false
	}
	kv, err := o.cache()
	if err != nil {
		return false
	}
	var paths []microkernel.Compute
	for _, k := range s.Unique() {
		c, err := o.pathOf(k, h)
		if err != nil {
			return false
		}
		if k.Type == microkernel.BF16.String() && PairsOpen(p, s, o) {
			c = microkernel.ComputeBF16 // as rates may say
		}
		paths = append(paths, c)
	}
	return h.mayRound(kv, paths)
}

// AttentionKnown says that a profile has the rates that it depends on for the cache of the options.
func AttentionKnown(p *profiles.Profile, isa microkernel.ISA, o Options) bool {
	kv, err := o.cache()
	r, steps := p.AttendRates(isa), p.AttendStepRates(isa)
	for _, d := range append(rivals(kv), microkernel.AttendF32) {
		if d.On(isa, p.Features()) && (r[d] == 0 || steps[d] == 0) {
			return false
		}
	}
	return err == nil
}
