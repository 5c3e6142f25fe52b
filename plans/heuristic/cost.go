package heuristic

import (
	"math"

	"sandwich/microkernel"
)

// spreadTo is the largest M at which the next block of weights is prefetched while all row tiles
// use the current one. For more rows reading takes a small part of the time.
const spreadTo = residentFrom - 1

// Depth of a block of weights under a spread prefetch. Up to fewRows rows it fills half of L1,
// since the prefetches occupy line fill buffers that later row tiles would need. Up to deepTo rows,
// cores on which deep blocks were measured to be faster use those. Otherwise the activations of
// more rows do not fit into a cache together with the block, which is then a sixteenth of L2.
const (
	fewRows     = 24
	deepTo      = 64
	minDepth    = 96 // in k
	spreadDepth = 1024
	deepFrom    = 1.03 // minimum measured gain of deep blocks; above noise
)

// Prefetch distances in bytes.
const (
	prefetchOnce   = microkernel.MaxSinglePrefetch // each line requested once
	prefetchBytes  = 8192                          // maximum per panel, each line requested twice
	prefetchShared = 16384                         // maximum of all panels together
)

// prefetched returns the kernel with the prefetch distance of packed weights for m rows. Several
// row tiles use a spread prefetch. A single row tile requests each line once if it is memory-bound,
// twice if arithmetic takes a significant part of the time, and not at all if the machine was
// measured to read faster without requests.
func (r Rates) prefetched(s microkernel.Spec, m int, widen bool) microkernel.Spec {
	if p := s.WithSpread(); !widen && m > s.MR && (m <= spreadTo || s.MatrixUnit()) && s.CanSpread() {
		return p
	}
	if widen || !s.CanPrefetch() {
		return s
	}
	if m > s.MR {
		return s.WithPrefetch(2048)
	}
	work := r.estimatedCycles(s, m)
	if r.Ahead > 0 && r.Ahead < 1 && work*r.Stream < hidden*panelBytes(s) && r.Stream > 0 {
		return s.WithPrefetch(0)
	}
	if work < readCycles(s)/8 { // too few rows for instruction counts to matter
		return s.WithPrefetch(r.singlePrefetch())
	}
	return s.WithPrefetch(min(prefetchBytes, prefetchShared/(s.NR/microkernel.PanelWidth)&^63))
}

// hidden is the ratio of arithmetic time to read time below which a kernel issues no prefetches on
// machines that were measured to read faster without them.
const hidden = 0.75

// singlePrefetch returns the prefetch distance of kernels that request each line once:
// prefetchOnce, or 0 if the machine was measured to read faster without requests.
func (r Rates) singlePrefetch() int {
	if r.Ahead > 0 && r.Ahead < 1 {
		return 0
	}
	return prefetchOnce
}

// Form returns the kernel with the default prefetch for m rows, widened or not.
func (r Rates) Form(s microkernel.Spec, m int, widen bool) microkernel.Spec {
	if p := s.WithSpread(); m >= residentFrom && !widen && s.Compute == microkernel.ComputeF32 && s.CanSpread() {
		return p // see resident
	}
	return r.prefetched(s, m, widen)
}

// rowCycles estimates the cycles of m rows for 32 k of one panel. Weights are read from memory
// unless they were widened. Rows are divided into tiles of nearly equal height. Without a spread
// prefetch only the first row tile overlaps with memory.
func (r Rates) rowCycles(s microkernel.Spec, m int, widen bool) float64 {
	tiles := (m + s.MR - 1) / s.MR
	low := m / tiles
	high := m - low*tiles // number of tiles with one more row
	all := float64(tiles-high)*r.tileCycles(s, low) + float64(high)*r.tileCycles(s, low+1)
	if widen {
		return all
	}
	memory := readCycles(s)
	panels := min(s.NR/microkernel.PanelWidth, 4) - 1 // fewer than four streams use less of the memory bandwidth
	memory *= [...]float64{1.12, 1.03, 1.01, 1}[panels]
	if s.Spread {
		return overlap(1.05*memory, 1.02*all) // each block is read into L2 by separate calls
	}
	first := r.tileCycles(s, (m+tiles-1)/tiles)
	return overlap(memory, first) + all - first
}

// readCycles returns the cycles to read 32 k of one panel from memory.
func readCycles(s microkernel.Spec) float64 { return panelBytes(s) / core.streamBytes }

// panelBytes returns the bytes of 32 k of one panel.
func panelBytes(s microkernel.Spec) float64 { return float64(microkernel.PanelOffset(s.B, 256)) / 8 }

// overlap estimates the cycles of reading and arithmetic that overlap: the cube root of the sum of
// their cubes.
func overlap(memory, work float64) float64 {
	return math.Cbrt(memory*memory*memory + work*work*work)
}
