package search

import (
	"sandwich/internal/num"
	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/plans/heuristic"
)

// dim is a dimension of a computation slice.
type dim int

const (
	dimK dim = iota
	dimN
	dimM
	dims
)

// space is the set of legal slices of one micro-kernel at one M.
type space struct {
	key     plans.WeightKey
	m       int
	columns int // of the sub-problem that is timed; determines the number of slices
	threads int
	kernel  MicroKernel
	unitK   int
}

// maxWiden bounds a widened slice of B to a thread's scratch, in float32 values; far below the
// limit of plans.
const maxWiden = 1 << 20

func newSpace(p *Problem, k MicroKernel, m, columns int) space {
	unit := 16
	if t, err := microkernel.ParseWeightType(p.Key.Type); err == nil {
		unit = max(unit, k.Spec.Compute.KStep(t))
	}
	return space{key: p.Key, m: m, columns: columns, threads: p.Threads, kernel: k, unitK: unit}
}

// tile returns the smallest slice: one register tile deep enough to amortize reading and writing C.
func (s space) tile() plans.Schedule {
	sp := s.kernel.Spec
	return s.legal(plans.Schedule{Kernel: sp, Widen: s.kernel.Widen, BM: sp.MR, BN: sp.NR, BK: num.RoundUp(64,
		s.unitK)})
}

// with returns c with one dimension set, rounded to its unit.
func (s space) with(c plans.Schedule, d dim, v int) plans.Schedule {
	switch d {
	case dimK:
		c.BK = v
	case dimN:
		c.BN = v
	case dimM:
		c.BM = v
	}
	return s.legal(c)
}

// size returns a dimension as a number; the whole of K counts as K.
func (s space) size(c plans.Schedule, d dim) int {
	switch d {
	case dimN:
		return c.BN
	case dimM:
		return c.BM
	}
	if c.BK == 0 {
		return s.key.K
	}
	return c.BK
}

// legal rounds a slice to multiples of the tile and of the quantization block and limits it to the
// problem. Slices that run alike get the same name, because the executor spreads rows evenly over
// the slices along M.
func (s space) legal(c plans.Schedule) plans.Schedule {
	mr, nr := c.Kernel.MR, c.Kernel.NR
	rows := max(1, num.CeilDiv(s.m, max(1, c.BM)))
	c.BM = num.RoundUp(num.CeilDiv(s.m, rows), mr)
	c.BN = min(max(nr, num.RoundUp(c.BN, nr)), num.RoundUp(s.key.N, nr))
	if c.BK != 0 {
		c.BK = max(s.unitK, num.RoundUp(c.BK, s.unitK))
	}
	if c.BK >= s.key.K {
		c.BK = 0
	}
	if c.Widen {
		depth := s.size(c, dimK)
		if c.BN*depth > maxWiden {
			c.BN = max(nr, maxWiden/depth/nr*nr)
		}
	}
	return c
}

// slices returns the number of slices.
func (s space) slices(c plans.Schedule) int {
	return num.CeilDiv(s.m, c.BM) * num.CeilDiv(s.columns, c.BN)
}

// parallel reports whether there is a slice for every active thread, or the problem has too few
// tiles for that at all.
func (s space) parallel(c plans.Schedule) bool {
	limit := num.CeilDiv(s.m, c.Kernel.MR) * num.CeilDiv(s.columns, c.Kernel.NR)
	return s.slices(c) >= min(s.threads, limit)
}

// packs reports whether copying the activations of a slice to contiguous rows may gain: more than
// one register tile reads them often.
func (s space) packs(c plans.Schedule) bool { return c.BN >= 4*c.Kernel.NR && s.m > c.Kernel.MR }

// scheme assigns the slices of c to threads and limits them to the share of one thread.
func (s space) scheme(c plans.Schedule, ways [2]int) plans.Schedule {
	c.WaysM, c.WaysN = ways[0], ways[1]
	if ways[0] > 0 {
		c.BM = min(c.BM, num.RoundUp(num.CeilDiv(s.m, ways[0]), c.Kernel.MR))
		c.BN = min(c.BN, num.RoundUp(num.CeilDiv(s.columns, ways[1]), c.Kernel.NR))
	}
	return s.legal(c)
}

// guess returns the slice of the default heuristic for the micro-kernel on the whole weight;
// screening compares micro-kernels with it.
func (s space) guess(l1, l2 int) plans.Schedule {
	c, err := heuristic.Cores{Threads: s.threads, L1: l1, L2: l2}.Slice(s.kernel.Spec, s.kernel.Widen, s.key, s.m)
	if err != nil { // a type without kernels has no candidates
		return s.tile()
	}
	return s.legal(c)
}
