package search

import (
	"cmp"
	"slices"

	"sandwich/microkernel"
	"sandwich/plans/heuristic"
)

// MicroKernel is a candidate micro-kernel: a register tile that reads the packed weight, or a panel
// that was widened to float32 once per slice.
type MicroKernel struct {
	Spec  microkernel.Spec
	Widen bool
}

// Candidates returns the micro-kernels of a weight on one instruction set: those that read its
// type, with both kinds of prefetch if the instruction set has them, and for weights narrower than
// float32 on the f32 path also those over widened panels. All compute the same bits (rule 6).
func Candidates(host microkernel.Features, isa microkernel.ISA, c microkernel.Compute,
	t microkernel.WeightType) []MicroKernel {
	var out []MicroKernel
	for _, s := range microkernel.Space(host, isa, c, t) {
		n := len(out)
		for _, p := range []microkernel.Spec{s.WithPrefetch(prefetch), s.WithSpread()} {
			if isa.Generates() && p.Validate() == nil {
				out = append(out, MicroKernel{Spec: p})
			}
		}
		if len(out) == n {
			out = append(out, MicroKernel{Spec: s})
		}
	}
	if c == microkernel.ComputeF32 && t != microkernel.F32 && isa.Generates() {
		for _, s := range microkernel.Space(host, isa, c, microkernel.F32) {
			out = append(out, MicroKernel{Spec: s, Widen: true})
		}
	}
	return out
}

// prefetch is the distance in bytes that represents all distances among the candidates. Weights
// come from memory, and most hardware prefetchers stop at the end of a page. At an anchor it is
// replaced by the distance of the default heuristic; finetune tries the others. Widened panels are
// in the cache and need no prefetch.
const prefetch = 4096

// prefetches are the distances that finetune tries, in bytes.
var prefetches = []int{0, 512, 1024, 2048, 4096, 8192}

// at returns the micro-kernel as it is first tried for m rows, and whether its prefetch is of the
// kind that the default heuristic chooses.
func (k MicroKernel) at(m int) (MicroKernel, bool) {
	f := heuristic.Rates{}.Form(k.Spec, m, k.Widen)
	if f.Spread == k.Spec.Spread {
		return MicroKernel{f, k.Widen}, true
	}
	return k, false
}

// tileKey identifies micro-kernels that differ only in unrolling, form, dot product and prefetch.
type tileKey struct {
	MR, NR int
	Widen  bool
}

func (k MicroKernel) tile() tileKey { return tileKey{k.Spec.MR, k.Spec.NR, k.Widen} }

// score estimates the cycles per row and column of m rows: the executor divides them into tiles of
// nearly equal height.
func (k MicroKernel) score(m int) float64 {
	tiles := (m + k.Spec.MR - 1) / k.Spec.MR
	low, high := m/tiles, m%tiles
	sum := 0.0
	if high > 0 {
		sum += float64(high) * float64(low+1) * heuristic.CyclesPerOp(k.Spec, low+1)
	}
	sum += float64(tiles-high) * float64(low) * heuristic.CyclesPerOp(k.Spec, low)
	return sum / float64(m)
}

// onceTiles is the minimum number of row tiles that share weights unpacked once.
const onceTiles = 8

// fits reports whether a micro-kernel should be tried for m rows. It rejects a tile that would be
// divided to the same heights as a lower one, because both run the same code, and kernels that
// unpack weights once for few row tiles.
func (k MicroKernel) fits(m int, columns int) bool {
	if k.Spec.DequantizesOnce() && m < onceTiles*k.Spec.MR {
		return false
	}
	if k.Spec.NR > microkernel.PanelWidth && k.Spec.NR >= 2*columns {
		return false
	}
	if !k.Spec.ISA.Generates() || m > 4*k.Spec.MR {
		return true
	}
	tiles := (m + k.Spec.MR - 1) / k.Spec.MR
	return (m+tiles-1)/tiles == k.Spec.MR
}

// tileGroup is a register tile with its variants: the one with the prefetch of the default
// heuristic, the same with the other prefetch, then all others.
type tileGroup struct {
	key      tileKey
	variants []MicroKernel
	score    float64
}

// groupTiles groups the micro-kernels that fit m rows by tile, cheapest first. The first tile of
// each width precedes the second of any, so that the first few tiles differ in width.
func groupTiles(kernels []MicroKernel, m, columns int) []tileGroup {
	index := map[tileKey]int{}
	var groups []tileGroup
	for _, k := range kernels {
		if !k.fits(m, columns) {
			continue
		}
		k, _ = k.at(m)
		i, ok := index[k.tile()]
		if !ok {
			i = len(groups)
			index[k.tile()] = i
			groups = append(groups, tileGroup{key: k.tile()})
		}
		groups[i].variants = append(groups[i].variants, k)
	}
	for i := range groups {
		g := &groups[i]
		g.sortVariants(m)
		g.score = g.variants[0].score(m)
	}
	slices.SortStableFunc(groups, func(a, b tileGroup) int { return cmp.Compare(a.score, b.score) })
	return interleaveWidths(groups)
}

func (g *tileGroup) sortVariants(m int) {
	difference := func(k MicroKernel) int {
		if _, ok := k.at(m); ok {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(g.variants, func(a, b MicroKernel) int {
		return cmp.Or(cmp.Compare(a.score(m), b.score(m)), cmp.Compare(difference(a), difference(b)))
	})
}

// interleaveWidths interleaves the groups by width and widening, keeping the order within each.
func interleaveWidths(groups []tileGroup) []tileGroup {
	type kind struct {
		nr    int
		widen bool
	}
	seen := map[kind]int{}
	round := make([]int, len(groups))
	for i, g := range groups {
		k := kind{g.key.NR, g.key.Widen}
		round[i] = seen[k]
		seen[k]++
	}
	order := make([]int, len(groups))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(round[a], round[b]) })
	out := make([]tileGroup, len(groups))
	for i, j := range order {
		out[i] = groups[j]
	}
	return out
}
