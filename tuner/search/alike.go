package search

import "sandwich/plans"

// Alike is the one name of all schedules that make the same calls of the same code for m rows of so
// many columns of a weight on so many threads: sizes of slices are those that come about, a tile
// that its slice cuts into lower ones is as high as they are (see MicroKernel.fits), and a scheme
// for another number of threads is none. A judge of recorded trials asks it of both sides.
func Alike(s plans.Schedule, k plans.WeightKey, m, columns, threads int) plans.Schedule {
	k.N = columns
	p := Problem{Key: k, Threads: threads}
	space := newSpace(&p, MicroKernel{s.Kernel, s.Widen}, m, columns)
	if s.BM == 0 || s.BM > m+s.Kernel.MR {
		s.BM = m
	}
	if s.BN == 0 || s.BN > columns {
		s.BN = columns
	}
	if s.BK > k.K {
		s.BK = 0
	}
	ways := [2]int{s.WaysM, s.WaysN}
	if ways[0]*ways[1] != threads {
		ways = [2]int{}
	}
	s = space.scheme(s, ways)
	if h := space.height(s); h < s.Kernel.MR {
		s.Kernel.MR = h
		s = space.legal(s)
	}
	return s
}

// height is of the tiles that the rows of each slice of c are cut into; that of the kernel where
// slices are cut differently, and where rows are so many that an executor calls its kernel more
// than once for them.
func (s space) height(c plans.Schedule) int {
	const most = 4 // tiles of a slice
	mr := c.Kernel.MR
	if !c.Kernel.ISA.Generates() || c.Kernel.MatrixUnit() {
		return mr
	}
	slices := ceilDiv(s.m, c.BM)
	high, low := ceilDiv(s.m, slices), s.m/slices
	if high > most*mr {
		return mr
	}
	h := ceilDiv(high, ceilDiv(high, mr))
	if ceilDiv(low, mr) != ceilDiv(low, h) {
		return mr
	}
	return h
}
