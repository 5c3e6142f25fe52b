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
	spaces   map[spaceKey][]microkernel.Spec // what candidates has listed so far
}

type spaceKey struct {
	isa     microkernel.ISA
	compute microkernel.Compute
	b       microkernel.WeightType
}

// candidates lists the tiles that kernel chooses from.
func (th thumb) candidates(k spaceKey) []microkernel.Spec {
	list, ok := th.spaces[k]
	if !ok {
		for _, s := range microkernel.Space(th.features, k.isa, k.compute, k.b) {
			if s.NR <= maxThumbNR && plain(s) {
				list = append(list, s)
			}
		}
		th.spaces[k] = list
	}
	return list
}

// integers says that int8 arithmetic serves a quantized type better than float32 on this CPU: at M = 1 it must keep up with the memory, at M = 512 with float32.
// With VPDPBUSD, and with SDOT of arm64, it does both for every type. The multiply-add of AVX-512 takes more instructions for eight-bit weights, whose signs it must move, than float32 does: q8_0 reaches
// 0.79 of float32 at M = 512, the other types 0.77 (iq4_nl) to 1.45 (q4_0), and at M = 1 they need it. AVX2 has a third port for integers. It asks the CPU and not the instruction set
// of the plan, so that --isa changes no bits.
func (th thumb) integers(t microkernel.WeightType) bool {
	switch {
	case th.features.Has(microkernel.HasVNNI), th.features.Has(microkernel.HasAVXVNNI), th.features.Has(microkernel.HasDotProd):
		return true
	case th.features.Has(microkernel.HasAVX512):
		return t != microkernel.Q8_0
	}
	return th.features.Has(microkernel.HasAVX2)
}

// rangeEnds are the last M of the ranges below the open one, which is laid out for openM rows.
var rangeEnds = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 28, 32, 64, 96, 128, 192, 256, 384, 512}

const openM = 1024

// streamTo is the last M for which reading the weights costs more than multiplying by them on any machine so far.
const streamTo = 32

// widenFrom is the M from which a slice of narrow weights is widened once instead of in every tile. Measured on 2048x2048, one core, weights from memory: q8_0 and q4_0
// gain 3 % at 40 rows and 25 % at 64; f16, which one instruction converts, breaks even at 96; bf16, which is widened by shifts, still loses 14 % at 128.
func widenFrom(t microkernel.WeightType) int {
	switch {
	case t.Quantized():
		return streamTo + 1
	case t == microkernel.F16:
		return 97
	}
	return 257
}

// rules makes the table of a weight: adjacent ranges of one schedule are one rule.
func (th thumb) rules(k WeightKey, t microkernel.WeightType, c microkernel.Compute) ([]Rule, error) {
	var rules []Rule
	lo := 1
	for i := 0; i <= len(rangeEnds); i++ {
		hi, m := 0, openM
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
	s := Schedule{Widen: c == microkernel.ComputeF32 && t != microkernel.F32 && m >= widenFrom(t) && th.isa != microkernel.Go}
	b := t
	if s.Widen {
		b = microkernel.F32
	}
	var err error
	if s.Kernel, err = th.kernel(b, c, m, k.N, s.Widen); err != nil {
		return s, err
	}
	switch {
	case m <= streamTo || s.Kernel.Spread:
		th.stream(&s, k, t, m)
	case m < residentFrom || s.Widen:
		th.block(&s, k, t, m)
	default:
		th.resident(&s, k, t, m)
	}
	return s, nil
}

// maxThumbNR bounds the columns of a tile: four panels are as many streams as the prefetchers of older cores follow beside the activations.
const maxThumbNR = 4 * microkernel.PanelWidth

// kernel picks the tile for m rows among the legal ones: by estimated time, then the most rows that fit, since a kernel runs fewer rows as well.
// Where the instruction set has no such kernel, narrower ones are asked.
func (th thumb) kernel(b microkernel.WeightType, c microkernel.Compute, m, n int, widen bool) (microkernel.Spec, error) {
	for _, isa := range th.isas() {
		best, least := microkernel.Spec{}, 0.0
		for _, s := range th.candidates(spaceKey{isa, c, b}) {
			if s.NR >= n+microkernel.PanelWidth {
				continue // a panel of the tile would never be filled
			}
			s = prefetched(s, m, widen)
			cycles := rowCycles(s, m, widen)
			if least == 0 || cycles < least || cycles == least && s.NR == best.NR && s.MR > best.MR {
				best, least = s, cycles
			}
		}
		if least > 0 {
			return best, nil
		}
	}
	return microkernel.Spec{}, fmt.Errorf("no %s kernel for %s weights in %s", th.isa, b, c)
}

// isas is the instruction set and the ones below it that the host has, widest first.
func (th thumb) isas() []microkernel.ISA {
	all := th.features.ISAs()
	for i, isa := range all {
		if isa == th.isa {
			return all[i:]
		}
	}
	return []microkernel.ISA{th.isa}
}

// plain leaves axes that only measurement can decide at their ordinary value: four k a turn, and broadcasts into registers, or lanes of
// registers where the multiply-add takes them.
func plain(s microkernel.Spec) bool {
	form := microkernel.Load
	if s.ISA == microkernel.NEON {
		form = microkernel.Lane
	}
	return s.Form == form && (s.B.Quantized() || s.ISA == microkernel.Go || s.KU == 4)
}

// chunksPerThread is how many slices each thread should find: enough that a disturbed core does not stall the others.
const chunksPerThread = 4

// stream lays out few rows: all of them in one slice, columns in chunks, and the whole of K in one chain. Under a spread prefetch K is cut into blocks that stay in a cache; the
// first block of a slice, which nothing has prefetched, is then a small part of it.
func (th thumb) stream(s *Schedule, k WeightKey, t microkernel.WeightType, m int) {
	s.BM = roundUp(max(m, streamTo), s.Kernel.MR)
	s.BK = 0
	s.BN = clampMultiple(k.N/(th.threads*2*chunksPerThread), s.Kernel.NR, k.N)
	if !s.Kernel.Spread {
		return
	}
	block := th.caches.l2 / 16
	if m <= fewRows {
		block = th.caches.l1 / 2
	}
	unit := max(32, t.KStep())
	depth := block / (microkernel.PanelOffset(t, unit) * s.Kernel.NR / microkernel.PanelWidth) * unit
	if s.BK = evenCut(k.K, max(leastDepth, unit, min(depth, spreadDepth)), unit); s.BK >= k.K {
		s.BK = 0
	}
}

// maxRows bounds the rows of a slice; longer chunks are cut evenly.
const maxRows = 512

// block lays out many rows: all of them in one slice, so that a panel is read, and widened, once; two tiles of columns; and as much of K as keeps those columns in a
// quarter of L2 while the rows pass over them. Measured on one core with 2 MiB of L2 (f32, f16, q8_0 and q4_0 weights of 3072x768 to 2048x5632, M = 128 and 512):
// 95 % of the multiply-add peak and more; 512 columns in one slice cost 5 to 12 %, cutting K at 256 cost 3 to 8 %.
func (th thumb) block(s *Schedule, k WeightKey, t microkernel.WeightType, m int) {
	mr, nr := s.Kernel.MR, s.Kernel.NR
	rows := (m + maxRows - 1) / maxRows
	s.BM = roundUp((m+rows-1)/rows, mr)
	s.BN = min(2*nr, roundUp(k.N, nr))
	bytes := 4 // of a value of the slice
	if s.Kernel.Compute == microkernel.ComputeInt8 {
		bytes = 1
	}
	unit := max(32, t.KStep())
	if s.BK = evenCut(k.K, max(256, th.caches.l2/4/(bytes*s.BN)/unit*unit), unit); s.BK >= k.K {
		s.BK = 0
	}
	th.share(s, k, m)
}

// share makes slices smaller, columns first, until every thread finds several.
func (th thumb) share(s *Schedule, k WeightKey, m int) {
	mr, nr := s.Kernel.MR, s.Kernel.NR
	for want := th.threads * chunksPerThread; s.slices(k.N, m) < want && (s.BN > nr || s.BM > 4*mr); {
		if s.BN > nr {
			s.BN = max(nr, s.BN/2/nr*nr)
		} else {
			s.BM = roundUp(s.BM/2, mr)
		}
	}
}

// residentFrom is the M from which activations are worth keeping in L2.
const residentFrom = 128

// Sizes of a slice whose activations stay in L2.
const (
	residentRows    = 128  // that K is cut for
	residentDepth   = 1024 // so that all rows pass over a block of weights in one call, which brings in the next block
	residentMost    = 256  // rows where K leaves room for more
	residentColumns = 512
)

// resident lays out many rows of weights that are read as they are packed: a block of activations fills half of L2, and panels stream past it, each
// block of them prefetched while the rows pass over the one before. Measured against block with 2 MiB of L2, one core and two, f32 weights of 768x768 to 4096x14336: 1 to 3.5 % at
// M = 128 to 1024 with hot weights, which leaves 1 % to the multiply-add peak, and 7 to 13 % with weights from memory; 2 to 4 % with int8 arithmetic, where spread prefetches
// gain at 128 rows what they lose at 256. Widened slices lose 10 %, since each block of rows widens them again.
func (th thumb) resident(s *Schedule, k WeightKey, t microkernel.WeightType, m int) {
	mr, nr := s.Kernel.MR, s.Kernel.NR
	bytes := 4 // of an activation
	if s.Kernel.Compute == microkernel.ComputeInt8 {
		bytes = 2 // 48 for 32 of them
	}
	unit := max(32, t.KStep())
	half := th.caches.l2 / 2 / bytes
	if s.BK = evenCut(k.K, max(256, min(residentDepth, half/residentRows)/unit*unit), unit); s.BK >= k.K {
		s.BK = 0
	}
	depth := s.BK
	if depth == 0 {
		depth = k.K
	}
	most := max(mr, min(residentMost, half/depth))
	rows := (m + most - 1) / most
	s.BM = roundUp((m+rows-1)/rows, mr)
	s.BN = evenCut(k.N, max(nr, residentColumns), nr)
	spread := s.Kernel
	spread.Prefetch, spread.Spread = 0, true
	if s.Kernel.Compute == microkernel.ComputeF32 && spread.Validate() == nil {
		s.Kernel = spread
	}
	th.share(s, k, m)
}

// slices is how many slices m rows of n columns make.
func (s Schedule) slices(n, m int) int { return (m + s.BM - 1) / s.BM * ((n + s.BN - 1) / s.BN) }

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
