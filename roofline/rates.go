package roofline

import (
	"math"

	"sandwich/microkernel"
	"sandwich/profiles"
)

// CoreRates is what one core does in a cycle, as the profile measured it: the figures that the
// default heuristic weigh register tiles by. A cycle is the time in which it makes two vector
// multiply-adds of float32. A rate of zero was not measured.
type CoreRates struct {
	Loads float64 // vectors from L1
	Reads float64 // vectors from L1 where each line is asked for ahead, too: what older profiles know
	Dots  float64 // dot products of bytes, in the time of one multiply-add of float32
	Pairs float64 // multiply-adds of bf16 pairs, in the time of one of float32
	// Where there is a matrix unit for bytes, its dot products as Dots counts them, and how many
	// times as fast as on vectors a kernel for q8_0 weights is on it, with all that both load,
	// store and scale. Zero for both where there is none.
	Unit, UnitGain float64
	// How many times as fast one row is multiplied by weights from memory where each line of them
	// is asked for once ahead, instead of never, and the bytes in a cycle without.
	Ahead, Stream float64
	// How many times as fast nine rows are multiplied by weights from memory in deep blocks, as in
	// shallow ones (profiles.FewRowBlocks).
	Deep  float64
	Ports PortRates // zero where nobody measured them
}

// Rates are those of an instruction set. Each is made of the best samples with the fewest PUs at
// work: what else runs slows a core down and never speeds it up, and the rates are ratios.
func (m *Machine) Rates(isa microkernel.ISA) (r CoreRates) {
	peak := m.best(profiles.Compute, isa.String(), microkernel.ComputeF32.String())
	lanes := float64(isa.Lanes())
	if peak == 0 || lanes == 0 {
		return r
	}
	const ports, flops = 2, 2
	cycle := ports * flops * lanes / peak
	r.Loads = m.best(profiles.Bandwidth, "", profiles.L1Loads) * cycle / (4 * lanes)
	r.Reads = m.best(profiles.Bandwidth, "", "l1") * cycle / (4 * lanes)
	r.Ports = m.Ports(isa)
	r.Dots = m.best(profiles.Compute, isa.String(), microkernel.ComputeInt8.String()) / peak / 4
	if u, ok := m.profile.UnitRates(isa); ok {
		r.Unit, r.UnitGain, r.Dots = u.Unit/peak/4, u.Kernel/u.VectorKernel, u.Vectors/peak/4
	}
	r.Ahead, r.Stream = m.times(profiles.WeightsAhead, profiles.Weights), m.onePU(profiles.Weights)*cycle
	r.Deep = m.times(profiles.WeightsDeep, profiles.WeightsShallow)
	if p, ok := m.profile.PairRates(isa); ok { // by which the path is chosen too
		r.Pairs = p.BF16 / p.F32
	}
	return r
}

// times is how many times as fast one PU is at one level as at another, by the medians and by the
// best samples alike (their geometric mean): where a machine is disturbed either of both ratios
// wanders by a tenth, and not together. 0 where one was not measured.
func (m *Machine) times(level, than string) float64 {
	medians := m.onePU(level) / m.onePU(than)
	best := m.best(profiles.Bandwidth, "", level) / m.best(profiles.Bandwidth, "", than)
	if times := math.Sqrt(medians * best); times > 0 && !math.IsInf(times, 0) {
		return times
	}
	return 0
}

// onePU is what one PU reads of a level in the median, since the memory is others' too and best
// samples are those of moments without them; 0 where that was not measured.
func (m *Machine) onePU(level string) float64 {
	for _, c := range m.profile.Ceilings {
		if c.Kind == profiles.Bandwidth && c.Level == level && c.PUs == 1 && c.Measured() {
			return c.Median
		}
	}
	return 0
}

// best is the fastest sample of a measured ceiling with the fewest PUs, a PU; 0 where there is
// none. what is a type of data or a level.
func (m *Machine) best(kind, isa, what string) (rate float64) {
	fewest := 0
	for _, c := range m.profile.Ceilings {
		of := c.Type
		if kind == profiles.Bandwidth {
			of = c.Level
		}
		if c.Kind != kind || c.Device != "" || c.ISA != isa || of != what || !c.Measured() || c.PUs < 1 {
			continue
		}
		if fewest == 0 || c.PUs < fewest {
			fewest, rate = c.PUs, max(c.Median, c.Max)/float64(c.PUs)
		}
	}
	return rate
}
