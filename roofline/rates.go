package roofline

import (
	"math"

	"sandwich/microkernel"
	"sandwich/profiles"
)

// CoreRates holds measured rates of one core per cycle, by which the heuristic compares register
// tiles. A cycle is the time of two vector multiply-adds of float32. A zero rate was not measured.
type CoreRates struct {
	Loads float64 // vectors from L1
	Reads float64 // vectors from L1 with prefetches; older profiles have this only
	Dots  float64 // dot products of bytes per multiply-add of float32
	Pairs float64 // multiply-adds of bf16 pairs per multiply-add of float32
	// Rate of the matrix unit for bytes, in the units of Dots, and gain of a q8_0 kernel on it over
	// one on vectors, including loads, stores and scales. Both are 0 without a unit.
	Unit, UnitGain float64
	// Gain of prefetching each line of weights from memory once, for products of one row, and bytes
	// per cycle without prefetches.
	Ahead, Stream float64
	// Gain of deep over shallow blocks of weights from memory, for products of nine rows
	// (profiles.FewRowBlocks).
	Deep  float64
	Ports PortRates // zero if not measured
}

// Rates returns the rates of an instruction set. Each uses the best samples with the smallest
// number of PUs, since other load only slows a core down.
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
	if u, ok := m.MatrixUnitRates(isa); ok {
		r.Unit, r.UnitGain, r.Dots = u.Unit/peak/4, u.Kernel/u.VectorKernel, u.Vectors/peak/4
	}
	r.Ahead, r.Stream = m.times(profiles.WeightsAhead, profiles.Weights), m.onePU(profiles.Weights)*cycle
	r.Deep = m.times(profiles.WeightsDeep, profiles.WeightsShallow)
	if p, ok := m.BF16Rates(isa); ok { // the choice of the path uses the same rates
		r.Pairs = p.BF16 / p.F32
	}
	return r
}

// times returns how many times as fast one PU reads at one level as at another, 0 if unknown. It is
// the geometric mean of the ratios of the medians and of the best samples, which disturbances
// affect independently.
func (m *Machine) times(level, than string) float64 {
	medians := m.onePU(level) / m.onePU(than)
	best := m.best(profiles.Bandwidth, "", level) / m.best(profiles.Bandwidth, "", than)
	if times := math.Sqrt(medians * best); times > 0 && !math.IsInf(times, 0) {
		return times
	}
	return 0
}

// onePU returns the median bandwidth of one PU at a level, 0 if unknown. It is not the best sample,
// since the memory is usually shared.
func (m *Machine) onePU(level string) float64 {
	for _, c := range m.profile.Ceilings {
		if c.Kind == profiles.Bandwidth && c.Level == level && c.PUs == 1 && c.Measured() {
			return c.Median
		}
	}
	return 0
}

// best returns the fastest sample per PU of a measured ceiling with the smallest number of PUs, 0
// if unknown. what is a data type or a level.
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
