package roofline

import (
	"errors"
	"fmt"
	"math"
)

// Anchor is a step with its measured duration.
type Anchor struct {
	Step
	Seconds float64
}

// FitEfficiency computes the efficiency of one kind of operator from three anchors in the order of
// their intensity: the most memory-bound one, one that unpacks weights for few rows, and the most
// compute-bound one (Agent.xpu appendix B, equations 2 and 3, extended by the overlap of both
// bounds and by unpacking). few.Seconds may be 0; unpacking then costs nothing. It fails if a rate
// or anchor is missing or the intensities are in the wrong order.
func FitEfficiency(p Limits, memory, few, compute Anchor) (Efficiency, error) {
	if !(memory.Seconds > 0 && compute.Seconds > 0 && p.Peak > 0 && p.Read > 0) {
		return Efficiency{}, errors.New("an anchor or a ceiling is missing")
	}
	if !(memory.Intensity() < compute.Intensity()) {
		return Efficiency{}, fmt.Errorf("the memory-bound anchor (intensity %g) must lie below the compute-bound "+
			"one (%g)",
			memory.Intensity(), compute.Intensity())
	}
	n := Efficiency{Peak: 1, Read: 1}
	const rounds = 50 // enough to converge if both ceilings matter at one anchor
	for range rounds {
		read := remainder(memory.Seconds, timeOf(p.times(memory.Step, n)))
		n.Read = share(memory.Bytes / p.Read / read)
		below, _, _ := p.times(compute.Step, n)
		left := remainder(compute.Seconds, below) - compute.Unpacked*n.Unpack/p.Peak
		n.Peak = share(compute.FLOP / p.Peak / math.Max(left, compute.Seconds/3))
		if few.Seconds > 0 && few.Unpacked > 0 {
			below, _, _ = p.times(few.Step, n)
			unpack := (remainder(few.Seconds, below)*p.Peak - few.FLOP/n.Peak) / few.Unpacked
			n.Unpack = math.Max(0, math.Min(unpack, p.maxUnpack(n, memory, compute)))
		}
	}
	return n, nil
}

// FitAlone returns the fraction of its bandwidth that a single active PU reaches with a
// memory-bound operator (Efficiency.Alone). p holds the limits of the PU, n the efficiency at other
// ceilings.
func FitAlone(p Limits, n Efficiency, memory Anchor) float64 {
	if !(memory.Seconds > 0 && memory.Bytes > 0 && p.Read > 0 && p.Peak > 0) {
		return 0
	}
	read := remainder(memory.Seconds, timeOf(p.times(memory.Step, n)))
	return share(memory.Bytes / p.Read / read)
}

// maxUnpack returns an upper bound of the cost of unpacking a value: the memory-bound anchor must
// not take longer than measured, and the compute-bound anchor must not exceed its peak. It limits
// the effect of a disturbed anchor.
func (p Limits) maxUnpack(n Efficiency, memory, compute Anchor) float64 {
	bound := math.Inf(1)
	if memory.Unpacked > 0 {
		bound = (memory.Seconds*p.Peak - memory.FLOP/n.Peak) / memory.Unpacked
	}
	if compute.Unpacked > 0 {
		below, _, _ := p.times(compute.Step, n)
		bound = math.Min(bound, (remainder(compute.Seconds, below)*p.Peak-compute.FLOP)/compute.Unpacked)
	}
	return bound
}

// timeOf returns the compute time of the parts of a step.
func timeOf(_, work, _ float64) float64 { return work }

// share limits an efficiency. It permits somewhat more than 1, for ceilings that were measured
// under load and for data that was partly cached.
func share(v float64) float64 { return math.Min(math.Max(v, 0.01), 1.5) }
