package heuristic

import (
	"math"

	"sandwich/microkernel"
)

// spreadTo is the last M for which the next block of weights is prefetched while all row tiles pass
// over one: beyond it reading is a small part of the time.
const spreadTo = residentFrom - 1

// The size of a block under a spread prefetch. Up to fewRows it fills half of L1, so that later row
// tiles need no line buffers, which the prefetches hold: on an Emerald Rapids 4 % at M = 16 in f32
// and 8 % at M = 8 in q8_0, against blocks of 128 KiB. Where a core has more of them the calls cost
// more than that: on a Zen 4 products of 16 and 23 rows are 1.05 to 1.12 times as fast in such deep
// blocks, those of 9 in q8_0 1.23 times, so that the probe times both, and those of 28 to 64 1.01
// times in the mean of six types and four sizes. Elsewhere the activations of more rows do not fit
// beside the block, which is then a sixteenth of L2; all of K as one block loses up to 20 %.
const (
	fewRows     = 24
	deepTo      = 64
	leastDepth  = 96 // of k
	spreadDepth = 1024
	deepFrom    = 1.03 // how many times as fast deep blocks must be by their rates: more than the noise
)

// How far ahead a kernel prefetches in each panel.
const (
	prefetchOnce   = microkernel.MaxSinglePrefetch
	prefetchBytes  = 8192  // twice, at the most
	prefetchShared = 16384 // twice, in all panels together
)

// prefetched sets how far ahead the kernel prefetches packed weights, for m rows. Measured with
// weights from memory on two cores: a spread prefetch gives 1.2 times the speed of 2 KiB in every
// panel at M = 16, 1.25 at 32 and 1.29 at 64 (f32, 4096x4096), 1.3 at M = 8 to 64 in q8_0. One pass
// over four panels is as fast with 3 to 8 KiB in each of them, and over one panel wants 8. A second
// request for each line gains 5 to 7 % at M = 1 in f16, q4_0 to q6_K and 11 % at M = 8 in f32; it
// gains nothing where multiplying is a small part of reading (f32 and q8_0 at M = 1), and costs 5 %
// where the weights lie in the third-level cache, 10 to 28 % in the second.
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
	work := r.reckonedCycles(s, m)
	if r.Ahead > 0 && r.Ahead < 1 && work*r.Stream < hidden*panelBytes(s) && r.Stream > 0 {
		return s.WithPrefetch(0)
	}
	if work < readCycles(s)/8 { // so few rows that no instructions are worth counting
		return s.WithPrefetch(r.askedOnce())
	}
	return s.WithPrefetch(min(prefetchBytes, prefetchShared/(s.NR/microkernel.PanelWidth)&^63))
}

// hidden is the share of the time of reading below which multiplying leaves all requests to the
// machine itself, where it was seen to read faster so: on a Zen 4 (one PU) such tiles are 1.03 to
// 1.28 times as fast without any (float32 of 1 to 4 rows, q8_0 of 2 to 4, f16 of one), those above
// it as fast with two requests or 1.05 to 1.5 times as fast (float32 and bf16 of 6 rows, q4_0 and
// q4_K of 4).
const hidden = 0.75

// askedOnce is how far ahead each line is asked for once, which is worth it where the machine was
// seen to read faster so, or was not asked. On a Zen 4 one row of q8_0, float32 and bf16 weights
// from memory took 1.18, 1.12 and 1.05 times as long with it.
func (r Rates) askedOnce() int {
	if r.Ahead > 0 && r.Ahead < 1 {
		return 0
	}
	return prefetchOnce
}

// Form is the kernel with the prefetch that the default heuristic choose for m rows, widened or
// not.
func (r Rates) Form(s microkernel.Spec, m int, widen bool) microkernel.Spec {
	if p := s.WithSpread(); m >= residentFrom && !widen && s.Compute == microkernel.ComputeF32 && s.CanSpread() {
		return p // see resident
	}
	return r.prefetched(s, m, widen)
}

// rowCycles estimates the cycles that m rows take for 32 k of one panel, whose weights come from
// memory unless they were widened. Rows are divided into tiles of nearly equal height. Without a
// spread prefetch only the first row tile overlaps with memory.
func (r Rates) rowCycles(s microkernel.Spec, m int, widen bool) float64 {
	tiles := (m + s.MR - 1) / s.MR
	low := m / tiles
	high := m - low*tiles // tiles with one row more
	all := float64(tiles-high)*r.tileCycles(s, low) + float64(high)*r.tileCycles(s, low+1)
	if widen {
		return all
	}
	memory := readCycles(s)
	panels := min(s.NR/microkernel.PanelWidth, 4) - 1 // fewer streams than four keep the memory less busy
	memory *= [...]float64{1.12, 1.03, 1.01, 1}[panels]
	if s.Spread {
		return overlap(1.05*memory, 1.02*all) // each block comes through the second-level cache, in calls of its own
	}
	first := r.tileCycles(s, (m+tiles-1)/tiles)
	return overlap(memory, first) + all - first
}

// readCycles is the cycles that 32 k of one panel take to come from memory.
func readCycles(s microkernel.Spec) float64 { return panelBytes(s) / core.streamBytes }

// panelBytes is 32 k of one panel.
func panelBytes(s microkernel.Spec) float64 { return float64(microkernel.PanelOffset(s.B, 256)) / 8 }

// overlap is how long reading and multiplying take together: the third root of the sum of their
// cubes. Measured with prefetches that ask twice, in times of M = 1: 1.04 at M = 8 (f32, 48 columns
// in one pass, multiplying alone 0.35), 1.07 at M = 6 (q8_0), 1.13 at M = 12 (f32; 0.53), 1.12 at M
// = 16 (f32, spread; 0.7), 1.43 at M = 32 (spread; 1.4).
func overlap(memory, work float64) float64 {
	return math.Cbrt(memory*memory*memory + work*work*work)
}
