package heuristic

import (
	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/profiles"
)

// Cores is what default heuristic for slices look at: the threads that share a product, and the
// bytes of L1 and L2 that each may count on.
type Cores struct {
	Threads, L1, L2 int
	Rates
}

// streamTo is the last M for which reading the weights costs more than multiplying by them on any
// machine so far.
const streamTo = 32

// Slice lays out m rows of a weight of n columns of k for one micro-kernel as the default heuristic
// do, widened or not, and in the form of prefetch that it has: where a search of schedules starts.
// tuner/search legalises it for its sub-problem.
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
	case m <= streamTo || s.Kernel.Spread && m < residentFrom:
		c.stream(s, k, t, m)
	case m < residentFrom || s.Widen:
		c.block(s, k, t, m)
	default:
		c.resident(s, k, t, m)
	}
}

// chunksPerThread is how many slices each thread should find: enough that a disturbed core does not
// stall the others.
const chunksPerThread = 4

// sliceBytes is how much of the packed weights a slice of few rows reads at most, where one tile of
// columns is not more anyway: a slice of one tile walks k before columns, as memory lies, which
// prefetches follow best, and the thread that takes the last one is waited for; one of less than
// some 20 microseconds is not worth the handing out.
const sliceBytes = 1 << 20

// stream lays out few rows: all of them in one slice, columns in chunks, and the whole of K in one
// chain. Under a spread prefetch K is cut into blocks that stay in a cache.
func (c Cores) stream(s *plans.Schedule, k plans.WeightKey, t microkernel.WeightType, m int) {
	s.BM = roundUp(max(m, streamTo), s.Kernel.MR)
	s.BK = 0
	columns := k.N / (c.Threads * 2 * chunksPerThread)
	// more activations, which every slice reads anew, are worth more columns
	if s.Kernel.Compute.ActRowBytes(k.K)*m <= c.L2/2 {
		panel := microkernel.Layout{Type: t, N: k.N, K: k.K}.PanelStride()
		columns = min(columns, sliceBytes/panel*microkernel.PanelWidth)
	}
	s.BN = clampMultiple(columns, s.Kernel.NR, k.N)
	c.even(s, k.N, m)
	if !s.Kernel.Spread {
		return
	}
	block, most := c.L2/16, spreadDepth
	switch shallow, deep := profiles.FewRowBlocks(c.L1, c.L2); {
	case m <= deepTo && c.Deep > deepFrom:
		block, most = deep, k.K
	case m <= fewRows:
		block = shallow
	}
	unit := max(32, t.KStep())
	depth := block / (microkernel.PanelOffset(t, unit) * s.Kernel.NR / microkernel.PanelWidth) * unit
	if s.BK = evenCut(k.K, max(leastDepth, unit, min(depth, most)), unit); s.BK >= k.K {
		s.BK = 0
	}
}

// maxRows bounds the rows of a slice; longer chunks are cut evenly.
const maxRows = 512

// block lays out many rows: all of them in one slice, so that a panel is read, and widened, once;
// two tiles of columns; and as much of K as keeps those columns in a quarter of L2 while the rows
// pass over them. Measured on one core with 2 MiB of L2 (f32, f16, q8_0 and q4_0 weights of
// 3072x768 to 2048x5632, M = 128 and 512): 95 % of the multiply-add peak and more; 512 columns in
// one slice cost 5 to 12 %, cutting K at 256 cost 3 to 8 %.
func (c Cores) block(s *plans.Schedule, k plans.WeightKey, t microkernel.WeightType, m int) {
	mr, nr := s.Kernel.MR, s.Kernel.NR
	rows := (m + maxRows - 1) / maxRows
	s.BM = roundUp((m+rows-1)/rows, mr)
	s.BN = min(2*nr, roundUp(k.N, nr))
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

// share makes slices smaller, columns first, until every thread finds several, and the last ones
// end together.
func (c Cores) share(s *plans.Schedule, k plans.WeightKey, m int) {
	mr, nr := s.Kernel.MR, s.Kernel.NR
	for want := c.Threads * chunksPerThread; slicesOf(*s, k.N, m) < want && (s.BN > nr || s.BM > 4*mr); {
		if s.BN > nr {
			s.BN = max(nr, s.BN/2/nr*nr)
		} else {
			s.BM = roundUp(s.BM/2, mr)
		}
	}
	c.even(s, k.N, m)
}

// allowedWaste is how much longer than its fair share of the columns a thread may work before
// narrower slices are worth their overhead.
const allowedWaste = 1.02

// even narrows slices, to no less than half, where threads that take them in turn would not end
// together: 11 of 512 columns on two threads leave one of them idle for 8 % of the time (5632x2048,
// M = 128).
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

// waste is the columns of the busiest of the threads that take the slices of m rows of n columns in
// turn, over its fair share of them.
func waste(s plans.Schedule, n, m, threads int) float64 {
	rows := (m + s.BM - 1) / s.BM
	slices := slicesOf(s, n, m)
	before := (slices - 1) / threads // slices that every thread has done before the last turn
	last := s.BN
	if slices-before*threads <= rows { // all of the last turn are of the last columns
		last = n - (slices/rows-1)*s.BN
	}
	return float64((before*s.BN+last)*threads) / float64(rows*n)
}

// residentFrom is the M from which activations are worth keeping in L2.
const residentFrom = 128

// Sizes of a slice whose activations stay in L2.
const (
	residentRows    = 128
	residentDepth   = 1024 // so that all rows pass over a block of weights in one call, which brings in the next block
	residentColumns = 512
)

// resident lays out many rows of weights that are read as they are packed: a block of activations
// lies in L2, in half of it at most, and panels stream past it, each block of them prefetched while
// the rows pass over the one before. Measured against block with 2 MiB of L2, one core and two, f32
// weights of 768x768 to 4096x14336: 1 to 3.5 % at M = 128 to 1024 with hot weights, which leaves 1
// % to the multiply-add peak, and 7 to 13 % with weights from memory (256 rows, which filled that
// half, cost 1 to 3 % on two cores); 2 to 4 % with int8 arithmetic, where spread prefetches gain at
// 128 rows what they lose at 256. Widened slices lose 10 %, since each block of rows widens them
// again.
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
	s.BM = roundUp((m+rows-1)/rows, mr)
	s.BN = evenCut(k.N, max(nr, residentColumns), nr)
	c.share(s, k, m)
}

// slicesOf is how many slices m rows of n columns make.
func slicesOf(s plans.Schedule, n, m int) int { return (m + s.BM - 1) / s.BM * ((n + s.BN - 1) / s.BN) }

// roundUp is v rounded up to a multiple of unit.
func roundUp(v, unit int) int { return (v + unit - 1) / unit * unit }

// clampMultiple is v rounded down to a multiple of unit, at least unit and at most limit rounded
// up.
func clampMultiple(v, unit, limit int) int {
	return max(unit, min(v/unit*unit, roundUp(limit, unit)))
}

// evenCut cuts n into pieces of at most piece, and gives the size that makes them as equal as
// multiples of unit allow.
func evenCut(n, piece, unit int) int {
	pieces := (n + piece - 1) / piece
	return roundUp((n+pieces-1)/pieces, unit)
}
