package roofline

import (
	"errors"
	"fmt"
	"math"
)

// Anchor is a measured step.
type Anchor struct {
	Step
	Seconds float64
}

// Reach turns peaks into effective ceilings from three anchors of one kind of op, in the order of
// their intensity: the most memory-bound, one whose weights are unpacked for few rows, and the most
// compute-bound (Agent.xpu appendix B, equations 2 and 3, which have two anchors and ops that are
// bound by one ceiling alone; between the ridges an op feels both, and unpacking besides). Without
// a second anchor (no seconds) unpacking costs nothing. It refuses anchors in the wrong order.
func Reach(p Pace, memory, few, compute Anchor) (Near, error) {
	if !(memory.Seconds > 0 && compute.Seconds > 0 && p.Peak > 0 && p.Read > 0) {
		return Near{}, errors.New("an anchor or a ceiling is missing")
	}
	if !(memory.Intensity() < compute.Intensity()) {
		return Near{}, fmt.Errorf("the memory-bound anchor (intensity %g) must lie below the compute-bound one (%g)",
			memory.Intensity(), compute.Intensity())
	}
	n := Near{Peak: 1, Read: 1}
	const rounds = 50 // three are enough where ceilings lie apart
	for range rounds {
		read := beside(memory.Seconds, timeOf(p.times(memory.Step, n)))
		n.Read = share(memory.Bytes / p.Read / read)
		below, _, _ := p.times(compute.Step, n)
		left := beside(compute.Seconds, below) - compute.Unpacked*n.Unpack/p.Peak
		n.Peak = share(compute.FLOP / p.Peak / math.Max(left, compute.Seconds/3))
		if few.Seconds > 0 && few.Unpacked > 0 {
			below, _, _ = p.times(few.Step, n)
			unpack := (beside(few.Seconds, below)*p.Peak - few.FLOP/n.Peak) / few.Unpacked
			n.Unpack = math.Max(0, math.Min(unpack, p.mostUnpack(n, memory, compute)))
		}
	}
	return n, nil
}

// ReachAlone is the share of its bandwidth that one PU reaches with a memory-bound op when it is
// alone (Near.Alone), where p is its pace and n what the op reaches of other ceilings.
func ReachAlone(p Pace, n Near, memory Anchor) float64 {
	if !(memory.Seconds > 0 && memory.Bytes > 0 && p.Read > 0 && p.Peak > 0) {
		return 0
	}
	read := beside(memory.Seconds, timeOf(p.times(memory.Step, n)))
	return share(memory.Bytes / p.Read / read)
}

// mostUnpack bounds what unpacking a value costs by the other anchors: the one that is bound by
// reading takes no longer than it did, and the one that is bound by multiplying reaches its peak.
// Few rows and many unpack nearly as often for each multiplication, so that a second anchor that
// was disturbed says anything of it: multiplications at three times the peak and single rows at
// half their speed were seen.
func (p Pace) mostUnpack(n Near, memory, compute Anchor) float64 {
	most := math.Inf(1)
	if memory.Unpacked > 0 {
		most = (memory.Seconds*p.Peak - memory.FLOP/n.Peak) / memory.Unpacked
	}
	if compute.Unpacked > 0 {
		below, _, _ := p.times(compute.Step, n)
		most = math.Min(most, (beside(compute.Seconds, below)*p.Peak-compute.FLOP)/compute.Unpacked)
	}
	return most
}

// timeOf is the time of multiplying among the parts of a step.
func timeOf(_, work, _ float64) float64 { return work }

// share bounds what may be reached of a ceiling: somewhat more than all of it where the ceiling was
// measured beside something else, or where a part of what was read lay in a cache.
func share(v float64) float64 { return math.Min(math.Max(v, 0.01), 1.5) }
