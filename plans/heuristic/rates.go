package heuristic

import (
	"slices"

	"sandwich/microkernel"
	"sandwich/profiles"
	"sandwich/roofline"
)

// Rates is what the estimates of cycles know of a core of the machine; where one was not measured,
// costFigures has what is assumed.
type Rates roofline.CoreRates

// ratesOf keeps rates within what cores are built for: a figure that something disturbed, or that
// somebody made up, bends a plan and does not break it.
func ratesOf(r roofline.CoreRates) Rates {
	loads := r.Loads * portsReached
	if loads == 0 {
		loads = r.Reads
	}
	return Rates{Ports: r.Ports, Loads: clip(loads, 1, 2),
		Dots:  clip(r.Dots, 0.25, 1), // beyond it a matrix unit was measured
		Pairs: clip(r.Pairs, 0.25, 2), Unit: clip(r.Unit, 0.05, 64), UnitGain: clip(r.UnitGain, 0.05, 16),
		Ahead: clip(r.Ahead, 0.25, 4), Stream: clip(r.Stream, 0.25, 64), Deep: clip(r.Deep, 0.25, 4)}
}

// portsReached is the share of measured load ports that a kernel is taken to keep busy: reckoned
// from the time of tiles of 14x16 in q4_0, which load the most, some 1.5 vectors a cycle of the 1.6
// to 1.9 that a Sapphire Rapids loads from L1.
const portsReached = 0.8

// RatesKnown says that a profile has the rates that tiles are weighed by.
func RatesKnown(p *profiles.Profile, isa microkernel.ISA) bool {
	r := roofline.NewMachine(p).Rates(isa)
	unit := microkernel.PeakSpec{ISA: isa, Type: microkernel.Int8Kernel}
	known := r.Loads > 0 && r.Dots > 0 && (r.Ports.Known() && r.Ahead > 0 && r.Deep > 0 || !isa.Generates())
	return known && (r.UnitGain > 0 || !slices.Contains(microkernel.PeakSpecs(p.Features()), unit))
}

// clip leaves a rate that was not measured at zero.
func clip(rate, least, most float64) float64 {
	if !(rate > 0) {
		return 0
	}
	return min(max(rate, least), most)
}

// or is a rate, or the assumed one where there is none.
func or(rate, assumed float64) float64 {
	if rate == 0 {
		return assumed
	}
	return rate
}
