package heuristic

import (
	"math"
	"sync"

	"sandwich/microkernel"
)

// portCycles is tileCycles with counted instructions and measured port throughputs. It returns
// false if the throughputs are unknown, for matrix units, and for kernels other than integer ones:
// floating-point kernels consist mostly of multiply-adds, and their differences depend on the size
// of the reorder buffer.
func (r Rates) portCycles(s microkernel.Spec, height int) (float64, bool) {
	if !r.Ports.Known() || s.MatrixUnit() || !s.ISA.Generates() || !s.Compute.Quantizes() ||
		height > s.MR {
		return 0, false
	}
	counts, ok := instructionsOf(s, height)
	if !ok {
		return 0, false
	}
	panels := float64(s.NR / microkernel.PanelWidth)
	arithmetic, loads := r.Ports.Cycles(counts)
	return crowded(arithmetic, loads) * 32 / float64(s.Iteration()) / panels, true
}

// crowding is the exponent by which two groups of ports combine: close to the larger time if one
// group is idle for a third of it, 1.09 times that if both are equally busy.
const crowding = 8

// crowded combines the cycles of two groups of ports.
func crowded(a, b float64) float64 {
	return math.Pow(math.Pow(a, crowding)+math.Pow(b, crowding), 1.0/crowding)
}

// counted caches the instruction counts of kernels for the process.
var counted sync.Map // microkernel.Spec -> *microkernel.InstructionCounts; nil if it cannot be generated

// instructionsOf returns the instruction counts of an iteration over some rows of a kernel,
// interpolated between one row and the whole tile. The prefetch distance does not change the
// counts.
func instructionsOf(s microkernel.Spec, rows int) (n microkernel.InstructionCounts, ok bool) {
	whole, ok := count(s, s.MR)
	if rows == s.MR || !ok {
		return whole, ok
	}
	one, ok := count(s, 1)
	for c := range n {
		n[c] = one[c] + (whole[c]-one[c])*float64(rows-1)/float64(s.MR-1)
	}
	return n, ok
}

// count returns the instruction counts of a kernel of some rows, from the cache if possible.
func count(s microkernel.Spec, rows int) (microkernel.InstructionCounts, bool) {
	s.MR = rows
	s = s.WithPrefetch(0)
	of, ok := counted.Load(s)
	if !ok {
		var counts *microkernel.InstructionCounts
		if c, err := microkernel.Instructions(s); err == nil {
			counts = &c
		}
		of, _ = counted.LoadOrStore(s, counts)
	}
	counts := of.(*microkernel.InstructionCounts)
	if counts == nil {
		return microkernel.InstructionCounts{}, false
	}
	return *counts, true
}
