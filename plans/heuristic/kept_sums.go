package heuristic

import (
	"sandwich/internal/num"
	"sandwich/microkernel"
	"sandwich/plans"
)

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

// leastKeptRows is the smallest height of a slice to which evenRows reduces it, in pairs of row
// tiles.
const leastKeptRows = 2 * keptPairRows

// keptGain is the estimated gain for which slices share less of what is prepared once per call.
const keptGain = 1.03

// evenRows reduces the height of slices where threads would otherwise finish at different times:
// lower slices prepare the weights more often, but more of them divide among the threads evenly.
func (c Cores) evenRows(s *plans.Schedule, n, m int) {
	busiest := func(s plans.Schedule) float64 {
		slices := (m + s.BM - 1) / s.BM
		return waste(s, n, m, c.Threads) * keptWork(s.Kernel, (m+slices-1)/slices) * float64(slices)
	}
	best := busiest(*s)
	for lower := *s; lower.BM/2 >= leastKeptRows; {
		lower.BM = num.RoundUp(lower.BM/2, s.Kernel.MR)
		even := lower
		c.even(&even, n, m)
		if t := busiest(even); t*keptGain < best {
			best, *s = t, even
		}
	}
}

// integersPay reports whether the path ComputeInt8K on a matrix unit is measured to be faster than
// other integer paths by the gain that a unit must have (unitGain).
func (h host) integersPay() bool {
	rival := max(h.kernels[microkernel.Int8BlockKernel], h.kernels[microkernel.Int8GroupKernel])
	rate := max(h.kernels[microkernel.Int8KKernel], h.kernels[microkernel.Int8KOverlapKernel])
	return rival > 0 && rate >= unitGain*rival
}

// overlapPays reports whether unpacking during products is measured to be at least as fast as
// unpacking before them.
func (h host) overlapPays() bool {
	rate := h.kernels[microkernel.Int8KOverlapKernel]
	return rate > 0 && rate >= h.kernels[microkernel.Int8KKernel]
}

// tilesPay reports whether the path ComputeBF16Tile is measured to be faster than float32 and other
// dot products of bfloat16 by the gain for which their rounding is accepted (pairGain).
func (h host) tilesPay() bool {
	rival := max(h.bf16.F32, h.bf16.BF16)
	return rival > 0 && h.kernels[microkernel.BF16TileKernel] >= pairGain*rival &&
		h.hasKernels(microkernel.ComputeBF16Tile, microkernel.BF16)
}
