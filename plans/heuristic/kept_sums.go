package heuristic

import (
	"fmt"

	"sandwich/microkernel"
	"sandwich/plans"
)

// Assumed cycles of kernels whose sums stay in tiles, for 32 k of a panel: AMX finishes a tile
// product in sixteen cycles, and a pair of row tiles by a panel takes two of them for bfloat16 and
// four for the two planes of 64 k of integers.
const (
	keptPairRows  = 32
	keptPair      = 40 // a pair of row tiles
	keptTile      = 22 // a single one
	keptRow       = 1  // a row of the last, lower tile, whose integers are scaled after the products
	keptUnpacking = 60 // planes of integers, once per call
)

// keptCycles is rowCycles of a kernel whose sums stay in tiles (Spec.KeepsSums).
func (r Rates) keptCycles(s microkernel.Spec, m int) float64 {
	work := float64(m / keptPairRows * keptPair)
	switch rest := m % keptPairRows; {
	case rest > keptPairRows/2:
		work += keptPair
	case rest > 0:
		work += keptTile
	}
	if s.Compute.Quantizes() {
		work += keptUnpacking + float64(m%keptPairRows)*keptRow
	}
	memory := readCycles(s)
	if s.Spread {
		memory *= 1.05
	}
	return overlap(memory, work)
}

// Sizes of slices of kernels that prepare weights once per call.
const (
	keptRows    = 512
	keptColumns = 256
	keptChunks  = 2 // slices per thread: more of them would share less of what is prepared
)

// prepared lays out many rows of a kernel that prepares weights once per call: as many rows as
// possible, and so much of k that their activations fill half of the second-level cache at most.
func (c Cores) prepared(s *plans.Schedule, k plans.WeightKey, t microkernel.WeightType, m int) {
	mr, nr := s.Kernel.MR, s.Kernel.NR
	blocks := (m + keptRows - 1) / keptRows
	s.BM = roundUp((m+blocks-1)/blocks, mr)
	unit := max(microkernel.ActQ8Group, s.Kernel.Compute.KStep(t))
	depth := c.L2 / 2 / s.Kernel.Compute.ActRowBytes(unit) / s.BM * unit
	if s.BK = evenCut(k.K, max(unit, min(residentDepth, depth)), unit); s.BK >= k.K {
		s.BK = 0
	}
	s.BN = evenCut(k.N, max(nr, keptColumns), nr)
	c.shareAmong(s, k, m, keptChunks)
}

// checkIntegers returns an error if the model has no weights for the path ComputeInt8K, or a worker
// has no kernels of it.
func (h host) checkIntegers(s plans.ModelShape) error {
	const path = microkernel.ComputeInt8K
	for _, k := range s.Unique() {
		t, err := microkernel.ParseWeightType(k.Type)
		if err != nil || !path.Takes(t) {
			continue
		}
		if h.hasKernels(path, t) {
			return nil
		}
		return fmt.Errorf("compute %s has no kernels for %s on this CPU (%s): leave it out", path, h.isa, h.features)
	}
	return fmt.Errorf("compute %s needs weights in blocks of %d with integer scales, and %s has none: leave it out",
		path, microkernel.ActQ8Group, s.Title())
}

// checkTiles returns an error if the model has no bf16 weights, or a worker has no kernels of the
// path ComputeBF16Tile.
func (h host) checkTiles(s plans.ModelShape) error {
	const path = microkernel.ComputeBF16Tile
	switch {
	case !has(s, microkernel.BF16):
		return fmt.Errorf("compute %s needs bf16 weights, and %s has none: leave it out", path, s.Title())
	case !h.hasKernels(path, microkernel.BF16):
		return fmt.Errorf("compute %s needs a matrix unit for bfloat16 (amx_int8 and avx512_bf16), and %s on this CPU "+
			"(%s) has none: leave it out", path, h.isa, h.features)
	}
	return nil
}

// hasKernels reports whether all workers have kernels of a path for a type.
func (h host) hasKernels(c microkernel.Compute, t microkernel.WeightType) bool {
	for _, isa := range h.workers() {
		if len(h.candidates(spaceKey{isa, c, t})) == 0 {
			return false
		}
	}
	return true
}
