package heuristic

import (
	"sandwich/internal/num"
	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/profiles"
)

// Cores holds the properties that default slices depend on: the number of threads that share a
// product, and the bytes of L1 and L2 per thread.
type Cores struct {
	Threads, L1, L2 int
	Rates
}

// streamTo is the largest M at which reading the weights takes longer than multiplying on any known
// machine.
const streamTo = 32

// Slice returns the default schedule of m rows of a weight for one kernel, widened or not. A search
// of schedules starts from it; tuner/search makes it legal for its subproblem.
func (c Cores) Slice(kernel microkernel.Spec, widen bool, k plans.WeightKey, m int) (plans.Schedule, error) {
	t, err := microkernel.ParseWeightType(k.Type)
	s := plans.Schedule{Kernel: kernel, Widen: widen}
	if err == nil {
		c.layOut(&s, k, t, m)
	}
	return s, err
}

func (c Cores) layOut(s *plans.Schedule, k plans.WeightKey, t microkernel.WeightType, m int) {
	switch {
	case m > streamTo && s.Kernel.KeepsSums():
		c.prepared(s, k, t, m)
	case m <= streamTo || s.Kernel.Spread && m < residentFrom:
		c.stream(s, k, t, m)
	case m < residentFrom || s.Widen:
		c.block(s, k, t, m)
	default:
		c.resident(s, k, t, m)
	}
}

// chunksPerThread is the minimum number of slices per thread, so that a disturbed core does not
// delay the others.
const chunksPerThread = 4

// sliceBytes limits the packed weights that a slice of few rows reads, unless one tile of columns
// is larger. Threads wait for the last slice, so large slices are slow at the end; small ones spend
// too much time on assignment.
const sliceBytes = 1 << 20

// stream lays out few rows: all rows in one slice, columns in chunks, and all of K. With a spread
// prefetch K is divided into blocks that stay in a cache.
func (c Cores) stream(s *plans.Schedule, k plans.WeightKey, t microkernel.WeightType, m int) {
	s.BM = num.RoundUp(max(m, streamTo), s.Kernel.MR)
	s.BK = 0
	columns := k.N / (c.Threads * 2 * chunksPerThread)
	// larger activations, which every slice reads again, need more columns per slice
	if s.Kernel.Compute.ActRowBytes(k.K)*m <= c.L2/2 {
		panel := microkernel.Layout{Type: t, N: k.N, K: k.K}.PanelStride()
		columns = min(columns, sliceBytes/panel*microkernel.PanelWidth)
	}
	s.BN = clampMultiple(columns, s.Kernel.NR, k.N)
	c.even(s, k.N, m)
	if !s.Kernel.Spread {
		return
	}
	block, limit := c.L2/16, spreadDepth
	switch shallow, deep := profiles.FewRowBlocks(c.L1, c.L2); {
	case m <= deepTo && c.Deep > deepFrom:
		block, limit = deep, k.K
	case m <= fewRows:
		block = shallow
	}
	unit := max(32, t.KStep())
	depth := block / (microkernel.PanelOffset(t, unit) * s.Kernel.NR / microkernel.PanelWidth) * unit
	if s.BK = evenCut(k.K, max(minDepth, unit, min(depth, limit)), unit); s.BK >= k.K {
		s.BK = 0
	}
}

// maxRows limits the rows of a slice; longer chunks are divided evenly.
const maxRows = 512

// block lays out many rows: all rows in one slice, so that a panel is read and widened once; two
// tiles of columns; and a depth at which those columns fit into a quarter of L2.
func (c Cores) block(s *plans.Schedule, k plans.WeightKey, t microkernel.WeightType, m int) {
	mr, nr := s.Kernel.MR, s.Kernel.NR
	rows := (m + maxRows - 1) / maxRows
	s.BM = num.RoundUp((m+rows-1)/rows, mr)
	s.BN = min(2*nr, num.RoundUp(k.N, nr))
	bytes := 4 // of a value of the slice
	switch s.Kernel.Compute.Arithmetic() {
	case microkernel.ComputeInt8:
		bytes = 1
	case microkernel.ComputeBF16:
		bytes = 2
	}
	unit := max(32, t.KStep())
	if s.BK = evenCut(k.K, max(256, c.L2/4/(bytes*s.BN)/unit*unit), unit); s.BK >= k.K {
		s.BK = 0
	}
	c.share(s, k, m)
}

// share reduces slices, columns first, until every thread has several.
func (c Cores) share(s *plans.Schedule, k plans.WeightKey, m int) {
	c.shareAmong(s, k, m, chunksPerThread)
}

// shareAmong is share for so many slices per thread.
func (c Cores) shareAmong(s *plans.Schedule, k plans.WeightKey, m, chunks int) {
	mr, nr := s.Kernel.MR, s.Kernel.NR
	for want := c.Threads * chunks; slicesOf(*s, k.N, m) < want && (s.BN > nr || s.BM > 4*mr); {
		if s.BN > nr {
			s.BN = max(nr, s.BN/2/nr*nr)
		} else {
			s.BM = num.RoundUp(s.BM/2, mr)
		}
	}
	c.even(s, k.N, m)
}

// allowedWaste is the imbalance of columns between threads above which narrower slices are used.
const allowedWaste = 1.02

// even narrows slices to no less than half if threads that take slices one after another would
// finish at different times.
func (c Cores) even(s *plans.Schedule, n, m int) {
	nr := s.Kernel.NR
	best := waste(*s, n, m, c.Threads)
	for bn := s.BN - nr; bn >= max(nr, s.BN/2) && best > allowedWaste; bn -= nr {
		narrow := *s
		narrow.BN = bn
		if w := waste(narrow, n, m, c.Threads); w < best {
			best, *s = w, narrow
		}
	}
}

// waste returns the columns of the busiest thread divided by the mean, when threads take the slices
// of m rows of n columns one after another.
func waste(s plans.Schedule, n, m, threads int) float64 {
	rows := (m + s.BM - 1) / s.BM
	slices := slicesOf(s, n, m)
	before := (slices - 1) / threads // slices that every thread has done before its last one
	last := s.BN
	if slices-before*threads <= rows { // all last slices have the last columns
		last = n - (slices/rows-1)*s.BN
	}
	return float64((before*s.BN+last)*threads) / float64(rows*n)
}

// residentFrom is the smallest M at which activations are kept in L2.
const residentFrom = 128

// Sizes of a slice whose activations stay in L2.
const (
	residentRows    = 128
	residentDepth   = 1024 // one call computes all rows with a block of weights and prefetches the next block
	residentColumns = 512
)

// resident lays out many rows of weights that are read as packed: a block of activations stays in
// half of L2, and panels stream past it, each block prefetched while the rows use the previous one.
// It is faster than block, except for widened slices, which each block of rows would widen again.
func (c Cores) resident(s *plans.Schedule, k plans.WeightKey, t microkernel.WeightType, m int) {
	mr, nr := s.Kernel.MR, s.Kernel.NR
	bytes := 4 // of an activation
	if s.Kernel.Compute != microkernel.ComputeF32 {
		bytes = 2 // of bfloat16; of int8, 48 for 32 of them
	}
	unit := max(32, t.KStep())
	half := c.L2 / 2 / bytes
	if s.BK = evenCut(k.K, max(256, min(residentDepth, half/residentRows)/unit*unit), unit); s.BK >= k.K {
		s.BK = 0
	}
	rows := (m + residentRows - 1) / residentRows
	s.BM = num.RoundUp((m+rows-1)/rows, mr)
	s.BN = evenCut(k.N, max(nr, residentColumns), nr)
	c.share(s, k, m)
}

// slicesOf returns the number of slices of m rows and n columns.
func slicesOf(s plans.Schedule, n, m int) int { return (m + s.BM - 1) / s.BM * ((n + s.BN - 1) / s.BN) }

// clampMultiple rounds v down to a multiple of unit, at least unit and at most limit rounded up.
func clampMultiple(v, unit, limit int) int {
	return max(unit, min(v/unit*unit, num.RoundUp(limit, unit)))
}

// evenCut returns the size of parts of n that are at most piece, multiples of unit and as equal as
// possible.
func evenCut(n, piece, unit int) int {
	pieces := (n + piece - 1) / piece
	return num.RoundUp((n+pieces-1)/pieces, unit)
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
	s.BM = num.RoundUp((m+blocks-1)/blocks, mr)
	unit := max(microkernel.ActQ8Group, s.Kernel.Compute.KStep(t))
	depth := c.L2 / 2 / s.Kernel.Compute.ActRowBytes(unit) / s.BM * unit
	if s.BK = evenCut(k.K, max(unit, min(residentDepth, depth)), unit); s.BK >= k.K {
		s.BK = 0
	}
	s.BN = evenCut(k.N, max(nr, keptColumns), nr)
	c.shareAmong(s, k, m, keptChunks)
	c.evenRows(s, k.N, m)
}

// minKeptRows is the smallest height of a slice to which evenRows reduces it, in pairs of row
// tiles.
const minKeptRows = 2 * keptPairRows

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
	for lower := *s; lower.BM/2 >= minKeptRows; {
		lower.BM = num.RoundUp(lower.BM/2, s.Kernel.MR)
		even := lower
		c.even(&even, n, m)
		if t := busiest(even); t*keptGain < best {
			best, *s = t, even
		}
	}
}
