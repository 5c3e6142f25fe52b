package search

import (
	"sandwich/internal/num"
	"sandwich/plans"
)

// Alike returns the common name of all schedules that make the same calls of the same code for m
// rows of a number of columns of a weight on a number of threads. Slice sizes are the effective
// ones, the height of a tile is that into which its slice divides (see MicroKernel.fits), and a
// scheme for another number of threads is dropped. Code that judges recorded trials must apply it
// to both sides.
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

// height returns the height of the tiles into which the rows of each slice of c are divided. It
// returns the kernel's height if slices are divided differently, or if an executor calls its kernel
// more than once for the rows.
func (s space) height(c plans.Schedule) int {
	const limit = 4 // tiles of a slice
	mr := c.Kernel.MR
	if !c.Kernel.ISA.Generates() || c.Kernel.MatrixUnit() {
		return mr
	}
	slices := num.CeilDiv(s.m, c.BM)
	high, low := num.CeilDiv(s.m, slices), s.m/slices
	if high > limit*mr {
		return mr
	}
	h := num.CeilDiv(high, num.CeilDiv(high, mr))
	if num.CeilDiv(low, mr) != num.CeilDiv(low, h) {
		return mr
	}
	return h
}
