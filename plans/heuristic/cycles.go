package heuristic

import (
	"math"

	"sandwich/microkernel"
	"sandwich/microkernel/qtype"
)

// costFigures is what cycle estimates take a core for. They are constants until rates of the
// machine at hand stand for them; what differs between instruction sets (registers, ports of
// integers) is asked of the instruction set.
type costFigures struct {
	ports       float64 // vector multiply-adds a cycle: two in every server core since Haswell and Neoverse V1
	loadPorts   float64 // vector loads a cycle, as built
	loads       float64 // as reached: no kernel keeps both ports busy all the time
	issue       float64 // instructions a cycle: assumed; Skylake issues 4 and Golden Cove and Zen 5 more
	chain       float64 // cycles of a multiply-add to the next of its chain, as built (Zen, Skylake to Sapphire Rapids)
	latency     float64 // as reached, with some that wait longer
	unpacking   float64 // instructions to unpack a vector of weights in registers: assumed, over all types
	matrix      float64 // vector products that a matrix unit makes in the time of one: assumed, nobody has timed one
	dots        float64 // dot products of bytes in the time of one multiply-add of float32
	pairs       float64 // multiply-adds of bf16 pairs in the time of one of float32: two ports make one dot product
	streamBytes float64 // of memory that one core reads in a cycle: 4.5 to 5.3 measured (Skylake-SP, Emerald Rapids)
}

var core = costFigures{ports: 2, loadPorts: 2, loads: 1.7, issue: 5, chain: 4, latency: 4.5,
	unpacking: 2.5, matrix: 8, dots: 1, pairs: 1, streamBytes: 5}

// CyclesPerOp estimates the cycles per multiply-add of a tile of so many rows of any form, unrolled
// or not: the busiest of the multiply, load and issue ports, and the latency of a chain. It only
// orders the candidates of a search before they are timed. tileCycles knows types better, and knows
// neither forms nor unrolling.
func CyclesPerOp(s microkernel.Spec, rows int) float64 {
	v := float64(s.NR) / float64(max(1, s.ISA.Lanes()))
	m := float64(rows)
	fma := m * v
	loads, other := v+m, 0.0
	if s.EmbedsLoads() {
		loads = v + fma
	}
	switch {
	case s.Compute == microkernel.ComputeBF16:
		loads /= 2 // pairs of k, as they are packed
	case s.B != microkernel.F32:
		other = core.unpacking * v // once per tile and vector
		if s.Compute.Quantizes() {
			fma, loads, other = fma/2, (v+m)/2, (m*v+v)/8 // four products a lane, and the scales of each block
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

// tileCycles is the cycles of one tile of so many rows for 32 k of one of its panels: the busiest
// of the arithmetic ports, the load ports and the chains of dependent multiply-adds.
func (r Rates) tileCycles(s microkernel.Spec, height int) float64 {
	if ports, ok := r.portCycles(s, height); ok {
		return max(ports, chainCycles(s))
	}
	return r.reckonedCycles(s, height)
}

// reckonedCycles is tileCycles by formulas that stand for the instructions.
func (r Rates) reckonedCycles(s microkernel.Spec, height int) float64 {
	return max(r.reckonedPorts(s, height), chainCycles(s))
}

// chainCycles is how long the multiply-adds of an element of C wait for each other in 32 k, for
// each panel of a tile.
func chainCycles(s microkernel.Spec) float64 {
	chain := steps(s.Compute) * core.latency / float64(s.NR/microkernel.PanelWidth)
	if s.Compute.Quantizes() {
		chain /= 2 // blocks overlap
	}
	return chain
}

// steps is the operands of 32 k along k.
func steps(c microkernel.Compute) float64 {
	switch c.Arithmetic() {
	case microkernel.ComputeInt8:
		return 8
	case microkernel.ComputeBF16:
		return 16
	}
	return 32
}

// reckonedPorts is the busier of the arithmetic and the load ports, by these formulas.
func (r Rates) reckonedPorts(s microkernel.Spec, height int) float64 {
	panels := float64(s.NR / microkernel.PanelWidth)
	vectors := float64(microkernel.PanelWidth / min(s.ISA.Lanes(), microkernel.PanelWidth)) // in a panel
	rows := float64(height)
	along, scales := steps(s.Compute), 0.0 // what a block of activations has besides
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

// sharing is how often an activation is broadcast for each vector that it meets: once for all of
// the tile, but where weights are unpacked to float32 in registers, once for the vectors that are
// unpacked side by side, as many as find room.
func sharing(s microkernel.Spec, rows, vectors float64) float64 {
	if s.Compute != microkernel.ComputeF32 || !s.B.Quantized() {
		return 1 / vectors
	}
	registers := float64(s.ISA.Registers())
	return 1 / max(1, min(vectors, 4, math.Floor((registers-rows*vectors-3)/3)))
}

// work is the vector instructions for 32 k of one vector of columns: unpack once, row for each row.
func (r Rates) work(s microkernel.Spec) (unpack, row float64) {
	d := s.B.Desc()
	planes, subs := float64(len(d.Fields)-1), 0.0 // beyond the first; scales inside a block
	if d.Subs != qtype.NoSubs {
		subs = 1
	}
	if s.Compute == microkernel.ComputeF32 {
		switch d.Float {
		case qtype.Single:
			return 16, 32 // the loads of W, which only count when rows are few
		case qtype.Half:
			return 64, 32
		case qtype.Brain:
			return 32, 32
		}
		return 96 + 64*planes + 8*subs, 32
	}
	if s.Compute == microkernel.ComputeBF16 {
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
	if s.Compute == microkernel.ComputeInt8Superblock { // the product of two scales, but for one of eight
		row -= 7.0 / 8
	}
	if s.DequantizesOnce() { // of 128 rows, with the stores; a tile loads scales and offsets
		unpack = (unpack+10)*float64(s.MR)/residentRows + 1 + subs
	}
	return unpack, row
}
