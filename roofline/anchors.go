package roofline

import (
	"fmt"
	"math"
)

// Anchor is one measured point of an operator on a target.
type Anchor struct {
	Intensity   float64 // FLOP per byte
	Utilization float64 // achieved bandwidth over peak bandwidth, in (0, 1]
}

// Calibrate turns peaks into effective ceilings from two anchors, the most memory-bound and
// the most compute-bound operator that was measured (Agent.xpu appendix B, equations 2 and 3):
// B_eff = u_m B, P_eff = min(P, u_c B I_c). It refuses utilizations outside (0, 1] and anchors in
// the wrong order.
func Calibrate(peak, bandwidth float64, memory, compute Anchor) (effPeak, effBandwidth float64, err error) {
	for _, a := range []Anchor{memory, compute} {
		if !(a.Utilization > 0 && a.Utilization <= 1) {
			return 0, 0, fmt.Errorf("anchor at intensity %g has utilization %g, which is not in (0, 1]", a.Intensity,
				a.Utilization)
		}
	}
	if !(memory.Intensity > 0 && memory.Intensity < compute.Intensity) {
		return 0, 0, fmt.Errorf("the memory-bound anchor (intensity %g) must lie below the compute-bound one "+
			"(%g)", memory.Intensity, compute.Intensity)
	}
	return math.Min(peak, compute.Utilization*bandwidth*compute.Intensity), memory.Utilization * bandwidth, nil
}

// Utilization is the share of the peak bandwidth that an operator of the given intensity uses: u(I)
// = min(u_m, u_c I_c / I) (equation 7).
func Utilization(intensity float64, memory, compute Anchor) float64 {
	return math.Min(memory.Utilization, compute.Utilization*compute.Intensity/intensity)
}
