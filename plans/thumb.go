package plans

import (
	"fmt"

	"sandwich/microkernel"
	"sandwich/profiles"
	"sandwich/topotree"
)

// caches are the sizes in bytes that one PU may count on.
type caches struct{ l1, l2 int }

// cachesOf reads the caches of the first usable PU; where the machine does not tell, it assumes what every server core of the last decade has.
func cachesOf(p *profiles.Profile) caches {
	c := caches{l1: 32 << 10, l2: 512 << 10}
	if p.Host.L1D > 0 {
		c.l1 = int(min(p.Host.L1D, 1<<20))
	}
	usable := p.UsablePUs()
	if len(usable) == 0 {
		return c
	}
	for _, o := range p.Machine.Objects {
		if o.Kind == topotree.KindL2 && o.Bytes > 0 && o.CPUs.Contains(usable[0]) {
			sharers := 0 // cores that share the cache: clusters of efficient cores do
			for _, core := range p.Machine.Objects {
				if core.Kind == topotree.KindCore && core.CPUs.In(o.CPUs) {
					sharers++
				}
			}
			c.l2 = int(min(o.Bytes, 64<<20)) / max(1, sharers)
		}
	}
	return c
}

// thumb is what the rules of thumb look at.
type thumb struct {
	features microkernel.Features
	isa      microkernel.ISA
	threads  int
	caches   caches
}

func (th thumb) hasVNNI() bool {
	switch th.isa {
	case microkernel.AVX512:
		return th.features.Has(microkernel.HasVNNI)
	case microkernel.AVX2:
		return th.features.Has(microkernel.HasAVXVNNI)
	}
	return false
}

// dot is the integer dot product of the instruction set: VNNI where it exists.
func (th thumb) dot() microkernel.Dot {
	switch {
	case th.isa == microkernel.Go || th.isa == microkernel.NEON:
		return microkernel.NoDot
	case !th.hasVNNI():
		return microkernel.MAdd
	case th.isa == microkernel.AVX512:
		return microkernel.VNNI
	}
	return microkernel.AVXVNNI
}

// rangeEnds are the last M of the ranges below the open one. Small M reads every weight for few rows and wants the widest stream of panels; large M wants the
// squarest tile.
var rangeEnds = []int{1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 48, 64, 96, 128, 256}

// widenFrom is the M from which a slice of narrow weights is widened once instead of in every tile. Widening costs about three instructions per vector of
// weights and a tile pays for it in ten or so multiply-adds, so that it is repaid as soon as several tiles use the slice.
const widenFrom = 33

// rules makes the table of a weight: adjacent ranges of one schedule are one rule.
func (th thumb) rules(k WeightKey, t microkernel.WeightType, c microkernel.Compute) ([]Rule, error) {
	var rules []Rule
	lo := 1
	for i := 0; i <= len(rangeEnds); i++ {
		hi, m := 0, 2*rangeEnds[len(rangeEnds)-1]
		if i < len(rangeEnds) {
			hi, m = rangeEnds[i], rangeEnds[i]
		}
		s, err := th.schedule(k, t, c, m)
		if err != nil {
			return nil, err
		}
		if n := len(rules); n > 0 && rules[n-1].Schedule == s {
			rules[n-1].MHi = hi
		} else {
			rules = append(rules, Rule{MLo: lo, MHi: hi, Schedule: s})
		}
		lo = hi + 1
	}
	return rules, nil
}

// schedule is the rule of thumb for m rows.
func (th thumb) schedule(k WeightKey, t microkernel.WeightType, c microkernel.Compute, m int) (Schedule, error) {
	s := Schedule{Widen: c == microkernel.ComputeF32 && t != microkernel.F32 && m >= widenFrom && th.isa != microkernel.Go}
	b := t
	if s.Widen {
		b = microkernel.F32
	}
	var err error
	if s.Kernel, err = th.kernel(b, c, m, k.N); err != nil {
		return s, err
	}
	if m < widenFrom {
		th.stream(&s, k, m)
	} else {
		th.block(&s, k, m)
	}
	return s, nil
}

// kernel picks the tile for m rows: as many rows as divide m evenly, then as many columns as the registers hold. Every candidate is a legal Spec.
func (th thumb) kernel(b microkernel.WeightType, c microkernel.Compute, m, n int) (microkernel.Spec, error) {
	const width = microkernel.PanelWidth
	best, score := microkernel.Spec{}, -1.0
	for mr := 1; mr <= min(m, 16); mr++ {
		for nr := width; nr <= 4*width; nr += width {
			s := th.spec(b, c, mr, nr)
			if nr > width && nr > n || s.Validate() != nil {
				continue
			}
			if sc := tileScore(m, mr, nr); sc > score {
				best, score = s, sc
			}
		}
	}
	if score < 0 {
		return best, fmt.Errorf("no %s kernel for %s weights in %s", th.isa, b, c)
	}
	return best, nil
}

// tileScore rates a tile for m rows. A tile does mr*nr multiply-adds for mr broadcasts and nr/16 vectors of weights, so that the harmonic mean of both sides
// counts; rows of the last, partly filled tile are lost. For few rows the weights are read once whatever the tile, and more columns mean
// more streams for the prefetchers and more independent chains.
func tileScore(m, mr, nr int) float64 {
	rows := float64(m) / float64((m+mr-1)/mr*mr)
	v := float64(nr) / microkernel.PanelWidth
	return rows * float64(mr) * v / (float64(mr) + 4*v) * 4
}

// spec is the kernel of a tile with the unrolling that suits its weights.
func (th thumb) spec(b microkernel.WeightType, c microkernel.Compute, mr, nr int) microkernel.Spec {
	s := microkernel.Spec{ISA: th.isa, Compute: c, B: b, MR: mr, NR: nr, KU: 4}
	switch {
	case c == microkernel.ComputeInt8:
		s.KU, s.Dot = 32, th.dot()
	case b.Quantized():
		s.KU = 32
	}
	return s
}

// chunksPerThread is how many slices each thread should find: enough that a disturbed core does not stall the others.
const chunksPerThread = 4

// stream lays out few rows: the whole of K in one chain, all rows in one slice, and columns in chunks.
func (th thumb) stream(s *Schedule, k WeightKey, m int) {
	s.BM = roundUp(m, s.Kernel.MR)
	s.BK = 0
	s.BN = clampMultiple(k.N/(th.threads*2*chunksPerThread), s.Kernel.NR, k.N)
}

// block lays out many rows: bk so that the tile's strips of both operands stay in L1, bm so that the rows of A stay in half of L2 while the columns of a slice pass
// by, bn so that the slice of B fits a quarter of L2 and every thread finds several slices.
func (th thumb) block(s *Schedule, k WeightKey, m int) {
	mr, nr := s.Kernel.MR, s.Kernel.NR
	depth := th.caches.l1 * 7 / 10 / (4 * nr)
	s.BK = evenCut(k.K, clampMultiple(depth, 32, 1024), 32)
	if s.BK >= k.K {
		s.BK = 0
	}
	bk := s.BK
	if bk == 0 {
		bk = k.K
	}
	rows := clampMultiple(th.caches.l2/4/(4*bk), mr, 1024)
	s.BM = roundUp(evenCut(m, rows, mr), mr)
	cols := clampMultiple(th.caches.l2/4/(4*bk), nr, 512)
	rowSlices := (m + s.BM - 1) / s.BM
	share := k.N * rowSlices / (th.threads * chunksPerThread)
	s.BN = min(cols, clampMultiple(share, nr, k.N))
	for s.BN == nr && s.BM > mr && (m+s.BM-1)/s.BM*((k.N+nr-1)/nr) < th.threads {
		s.BM = roundUp(s.BM/2, mr) // fewer columns than threads: cut the rows
	}
}

// roundUp is v rounded up to a multiple of unit.
func roundUp(v, unit int) int { return (v + unit - 1) / unit * unit }

// clampMultiple is v rounded down to a multiple of unit, at least unit and at most limit rounded up.
func clampMultiple(v, unit, limit int) int {
	return max(unit, min(v/unit*unit, roundUp(limit, unit)))
}

// evenCut cuts n into pieces of at most piece, and gives the size that makes them as equal as multiples of unit allow.
func evenCut(n, piece, unit int) int {
	pieces := (n + piece - 1) / piece
	return roundUp((n+pieces-1)/pieces, unit)
}
