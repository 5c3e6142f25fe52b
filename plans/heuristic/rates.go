package heuristic

import (
	"slices"

	"sandwich/microkernel"
	"sandwich/profiles"
	"sandwich/roofline"
)

// Rates holds measured rates of a core for cycle estimates. A zero rate was not measured;
// costFigures then applies.
type Rates roofline.CoreRates

// ratesOf limits rates to plausible values, so that a disturbed measurement cannot make a plan
// unusable.
func ratesOf(r roofline.CoreRates) Rates {
	loads := r.Loads * portsReached
	if loads == 0 {
		loads = r.Reads
	}
	return Rates{Ports: r.Ports, Loads: limit(loads, 1, 2),
		Dots:  limit(r.Dots, 0.25, 1), // a higher rate is that of a matrix unit
		Pairs: limit(r.Pairs, 0.25, 2), Unit: limit(r.Unit, 0.05, 64), UnitGain: limit(r.UnitGain, 0.05, 16),
		Ahead: limit(r.Ahead, 0.25, 4), Stream: limit(r.Stream, 0.25, 64), Deep: limit(r.Deep, 0.25, 4)}
}

// portsReached is the fraction of measured load throughput that a kernel is assumed to reach.
const portsReached = 0.8

// RatesKnown reports whether a profile has the rates that the choice of kernels uses.
func RatesKnown(p *profiles.Profile, isa microkernel.ISA) bool {
	r := roofline.NewMachine(p).Rates(isa)
	unit := microkernel.PeakSpec{ISA: isa, Type: microkernel.Int8Kernel}
	known := r.Loads > 0 && r.Dots > 0 && (r.Ports.Known() && r.Ahead > 0 && r.Deep > 0 || !isa.Generates())
	peaks := microkernel.PeakSpecs(p.Features())
	kernels := roofline.NewMachine(p).KernelRates(isa)
	for _, t := range []string{microkernel.Int8KKernel, microkernel.Int8KOverlapKernel, microkernel.Int8BlockKernel,
		microkernel.Int8GroupKernel, microkernel.BF16TileKernel} {
		if kernels[t] == 0 && slices.Contains(peaks, microkernel.PeakSpec{ISA: isa, Type: t}) {
			return false
		}
	}
	return known && (r.UnitGain > 0 || !slices.Contains(peaks, unit))
}

// limit bounds a rate to [lo, hi], and returns 0 for a rate that was not measured.
func limit(rate, lo, hi float64) float64 {
	if !(rate > 0) {
		return 0
	}
	return min(max(rate, lo), hi)
}

// or returns rate, or assumed if rate is 0.
func or(rate, assumed float64) float64 {
	if rate == 0 {
		return assumed
	}
	return rate
}
