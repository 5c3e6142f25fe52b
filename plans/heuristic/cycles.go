package heuristic

import (
	"math"

	"sandwich/microkernel"
	"sandwich/microkernel/qtype"
)

// costFigures holds properties of a core for cycle estimates. They are constants that are used
// where the machine was not measured. Properties that depend on the instruction set, such as
// registers, are asked of the instruction set.
type costFigures struct {
	ports       float64 // vector multiply-adds per cycle
	loadPorts   float64 // vector loads per cycle by design
	loads       float64 // vector loads per cycle that kernels reach
	issue       float64 // instructions per cycle: assumed
	chain       float64 // latency of a dependent multiply-add in cycles by design
	latency     float64 // the same as kernels reach it
	unpacking   float64 // instructions to unpack a vector of weights in registers: assumed mean of all types
	matrix      float64 // products of a matrix unit per vector product: assumed
	dots        float64 // dot products of bytes per multiply-add of float32
	pairs       float64 // multiply-adds of bf16 pairs per multiply-add of float32
	streamBytes float64 // bytes that one core reads from memory per cycle
}

var core = costFigures{ports: 2, loadPorts: 2, loads: 1.7, issue: 5, chain: 4, latency: 4.5,
	unpacking: 2.5, matrix: 8, dots: 1, pairs: 1, streamBytes: 5}

// CyclesPerOp estimates the cycles per multiply-add of a tile of some rows in any kernel form: the
// busiest of the multiply, load and issue ports, and the latency of a chain. It only orders the
// candidates of a search before they are timed. tileCycles is more accurate by weight type, but
// ignores forms and unrolling.
func CyclesPerOp(s microkernel.Spec, rows int) float64 {
	v := float64(s.NR) / float64(max(1, s.ISA.Lanes()))
	m := float64(rows)
	fma := m * v
	loads, other := v+m, 0.0
	if s.EmbedsLoads() {
		loads = v + fma
	}
	switch {
	case s.Compute.RoundsBF16():
		loads /= 2 // packed in pairs of k
	case s.B != microkernel.F32:
		other = core.unpacking * v // once per tile and vector
		if s.Compute.Quantizes() {
			fma, loads, other = fma/2, (v+m)/2, (m*v+v)/8 // four products per lane, and the scales of each block
			if s.MatrixUnit() {
				fma /= core.matrix
			}
		}
	}
	issue := fma + loads + other
	if s.EmbedsLoads() {
		issue -= fma // load and multiply are one instruction
	}
	cycles := max((fma+other)/core.ports, loads/core.loadPorts, issue/core.issue, core.chain)
	loop := 1 / float64(max(1, s.KU))
	return (cycles + loop) / (m * float64(s.NR))
}

// tileCycles estimates the cycles of a tile of height rows for 32 k of one of its panels: the
// busiest of the arithmetic ports, the load ports and the chains of dependent multiply-adds.
func (r Rates) tileCycles(s microkernel.Spec, height int) float64 {
	if ports, ok := r.portCycles(s, height); ok {
		return max(ports, chainCycles(s))
	}
	return r.estimatedCycles(s, height)
}

// estimatedCycles is tileCycles with formulas instead of counted instructions.
func (r Rates) estimatedCycles(s microkernel.Spec, height int) float64 {
	return max(r.estimatedPorts(s, height), chainCycles(s))
}

// chainCycles returns the latency of the chain of multiply-adds of an element of C in 32 k, per
// panel of a tile.
func chainCycles(s microkernel.Spec) float64 {
	chain := steps(s.Compute) * core.latency / float64(s.NR/microkernel.PanelWidth)
	if s.Compute.Quantizes() {
		chain /= 2 // blocks overlap
	}
	return chain
}

// steps returns the number of vector operands in 32 k.
func steps(c microkernel.Compute) float64 {
	switch c.Arithmetic() {
	case microkernel.ComputeInt8:
		return 8
	case microkernel.ComputeBF16:
		return 16
	}
	return 32
}

// estimatedPorts estimates the cycles of the busier of the arithmetic and the load ports.
func (r Rates) estimatedPorts(s microkernel.Spec, height int) float64 {
	panels := float64(s.NR / microkernel.PanelWidth)
	vectors := float64(microkernel.PanelWidth / min(s.ISA.Lanes(), microkernel.PanelWidth)) // in a panel
	rows := float64(height)
	along, scales := steps(s.Compute), 0.0 // scales: further loads per block of activations
	if s.Compute.Quantizes() {
		scales = 2
	}
	unpack, row := r.work(s)
	ports := core.ports
	if s.Compute.Quantizes() {
		ports = float64(s.ISA.IntegerPorts())
	}
	arithmetic := vectors * (unpack + rows*row) / ports
	share := sharing(s, rows, panels*vectors)
	if s.Compute == microkernel.ComputeF32 && s.B.Quantized() {
		arithmetic *= 1 + share/4 // few chains at a time
	}
	loads := vectors * (along + (along+scales)*rows*share) / or(r.Loads, core.loads)
	return max(arithmetic, loads)
}

// sharing returns the broadcasts of an activation per vector of columns that uses it: one per tile,
// or where weights are unpacked to float32 in registers, one per group of vectors that fit into
// registers together.
func sharing(s microkernel.Spec, rows, vectors float64) float64 {
	if s.Compute != microkernel.ComputeF32 || !s.B.Quantized() {
		return 1 / vectors
	}
	registers := float64(s.ISA.Registers())
	return 1 / max(1, min(vectors, 4, math.Floor((registers-rows*vectors-3)/3)))
}

// work returns the vector instructions for 32 k of one vector of columns: those that unpack it,
// once per tile, and those of each row.
func (r Rates) work(s microkernel.Spec) (unpack, row float64) {
	d := s.B.Desc()
	planes, subs := float64(len(d.Fields)-1), 0.0 // planes after the first; 1 if a block has sub-block scales
	if d.Subs != qtype.NoSubs {
		subs = 1
	}
	if s.Compute == microkernel.ComputeF32 {
		switch d.Float {
		case qtype.Single:
			return 16, 32 // the loads of W, which matter for few rows only
		case qtype.Half:
			return 64, 32
		case qtype.Brain:
			return 32, 32
		}
		return 96 + 64*planes + 8*subs, 32
	}
	if s.Compute.RoundsBF16() {
		return 8, 32 / or(r.Pairs, core.pairs)
	}
	unpack = 4
	if d.Bits() < 8 {
		unpack = 14 + 16*planes + 10*subs
	}
	switch {
	case !s.Dot.SumsWords():
		row = 8/or(r.Dots, core.dots) + 3 + subs
	case d.WideBytes():
		unpack, row = unpack+16, 35
	default:
		row = 19 + 4*planes + 2*subs
	}
	if s.Compute == microkernel.ComputeInt8Superblock { // scales are multiplied once per eight blocks
		row -= 7.0 / 8
	}
	if s.DequantizesOnce() { // unpacked once for 128 rows, with stores; a tile loads scales and offsets
		unpack = (unpack+10)*float64(s.MR)/residentRows + 1 + subs
	}
	return unpack, row
}

// Assumed cycles of kernels whose sums stay in tiles, for 32 k of a panel, in proportion to those
// of tiles on vectors (tileCycles) as `make amx-check` shows both with all PUs busy.
const (
	keptPairRows  = 32
	keptPair      = 100 // a pair of row tiles
	keptTile      = 45  // a single one
	keptRow       = 1   // a row of the last, lower tile, whose integers are scaled after the products
	keptUnpacking = 110 // planes of integers, once per call
	keptFirst     = 10  // those of the first superblock, if the others are unpacked during products
	keptOverlap   = 64  // rows from which they are
)

// keptCycles is rowCycles of a kernel whose sums stay in tiles (Spec.KeepsSums).
func (r Rates) keptCycles(s microkernel.Spec, m int) float64 {
	memory := readCycles(s)
	if s.Spread {
		memory *= 1.05
	}
	return overlap(memory, keptWork(s, m))
}

// keptWork returns the cycles of products of m rows, without those of reading weights from memory.
func keptWork(s microkernel.Spec, m int) float64 {
	work := float64(m / keptPairRows * keptPair)
	switch rest := m % keptPairRows; {
	case rest > keptPairRows/2:
		work += keptPair
	case rest > 0:
		work += keptTile
	}
	if s.Compute.Quantizes() {
		unpacking := keptUnpacking
		if s.Overlaps() && m >= keptOverlap {
			unpacking = keptFirst
		}
		work += float64(unpacking + m%keptPairRows*keptRow)
	}
	return work
}
