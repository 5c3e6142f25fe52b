package heuristic

import (
	"math"
	"sync"

	"sandwich/microkernel"
)

// portCycles is tileCycles by the instructions that are emitted for the tile and the measured rates
// of their classes; false where nobody measured them, of matrix units, and of all but integers:
// tiles of floats are multiply-adds and little else, and what tells them apart is how far a core
// looks ahead, of which rates of ports know nothing.
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

// crowding is how much two kinds of ports that are almost as busy as each other hold each other up:
// the longer time where one is idle for a third of it, 1.09 of it where both take as long. Of tiles
// of 512 rows on a Zen 4, those of 16 columns, as busy loading as multiplying, took 1.15 to 1.19
// times as long as those of 32 and 48 in q6_K and q2_K and 1.01 to 1.04 times in q4_K, where the
// busier ports alone would have 1.07, 1.10 and 0.98.
const crowding = 8

func crowded(a, b float64) float64 {
	return math.Pow(math.Pow(a, crowding)+math.Pow(b, crowding), 1.0/crowding)
}

// counted are the instructions of tiles, which are the same for every plan of this process.
var counted sync.Map // microkernel.Spec -> *microkernel.InstructionCounts; nil where there is no such code

// instructionsOf is those of an iteration over so many rows of a tile, on the line between one row
// and the whole tile, where registers are fewest. How far a kernel prefetches makes no difference.
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

// count is those that are emitted for a tile of so many rows, once.
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
