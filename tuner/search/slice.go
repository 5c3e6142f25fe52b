package search

import (
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

// space is the slices that are legal for one micro-kernel at one M.
type space struct {
	key     plans.WeightKey
	m       int
	columns int // of the sub-problem that is timed: it decides how many slices there are
	threads int
	kernel  MicroKernel
	unitK   int
}

// maxWiden keeps a widened slice of B within what a thread's scratch may be, in float32 values; far
// below the limit of plans.
const maxWiden = 1 << 20

func newSpace(p *Problem, k MicroKernel, m, columns int) space {
	unit := 16
	if t, err := microkernel.ParseWeightType(p.Key.Type); err == nil {
		unit = max(unit, t.KStep())
	}
	return space{key: p.Key, m: m, columns: columns, threads: p.Threads, kernel: k, unitK: unit}
}

// tile is the smallest slice: one register tile deep enough to amortise reading and writing C.
func (s space) tile() plans.Schedule {
	sp := s.kernel.Spec
	return s.legal(plans.Schedule{Kernel: sp, Widen: s.kernel.Widen, BM: sp.MR, BN: sp.NR, BK: roundUp(64, s.unitK)})
}

// with sets one dimension, rounded to its unit.
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

// size of a dimension as a number: the whole of K counts as K.
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

// legal rounds a slice to multiples of the tile and of the quantization block and cuts it to the
// problem. Slices that run alike get the same name: the executor spreads rows evenly over the
// slices along M.
func (s space) legal(c plans.Schedule) plans.Schedule {
	mr, nr := c.Kernel.MR, c.Kernel.NR
	rows := max(1, ceilDiv(s.m, max(1, c.BM)))
	c.BM = roundUp(ceilDiv(s.m, rows), mr)
	c.BN = min(max(nr, roundUp(c.BN, nr)), roundUp(s.key.N, nr))
	if c.BK != 0 {
		c.BK = max(s.unitK, roundUp(c.BK, s.unitK))
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

// slices is how many slices there are to hand out.
func (s space) slices(c plans.Schedule) int {
	return ceilDiv(s.m, c.BM) * ceilDiv(s.columns, c.BN)
}

// parallel says whether every active thread finds a slice, or whether the problem has too few tiles
// for that at all.
func (s space) parallel(c plans.Schedule) bool {
	most := ceilDiv(s.m, c.Kernel.MR) * ceilDiv(s.columns, c.Kernel.NR)
	return s.slices(c) >= min(s.threads, most)
}

// packs says whether copying the activations of a slice to rows that lie side by side may gain:
// more than one register tile reads them, and often.
func (s space) packs(c plans.Schedule) bool { return c.BN >= 4*c.Kernel.NR && s.m > c.Kernel.MR }

// scheme lays the slices of c on threads and cuts them to the share of one thread.
func (s space) scheme(c plans.Schedule, ways [2]int) plans.Schedule {
	c.WaysM, c.WaysN = ways[0], ways[1]
	if ways[0] > 0 {
		c.BM = min(c.BM, roundUp(ceilDiv(s.m, ways[0]), c.Kernel.MR))
		c.BN = min(c.BN, roundUp(ceilDiv(s.columns, ways[1]), c.Kernel.NR))
	}
	return s.legal(c)
}

// guess is the slice that the default heuristic lay out for the micro-kernel on the whole weight:
// where screening compares micro-kernels.
func (s space) guess(l1, l2 int) plans.Schedule {
	c, err := heuristic.Cores{Threads: s.threads, L1: l1, L2: l2}.Slice(s.kernel.Spec, s.kernel.Widen, s.key, s.m)
	if err != nil { // a type without kernels has no candidates
		return s.tile()
	}
	return s.legal(c)
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

func roundUp(n, to int) int { return ceilDiv(n, to) * to }
