package heuristic

import (
	"fmt"
	"iter"
	"math"

	"sandwich/microkernel"
	"sandwich/microkernel/qtype"
	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/roofline"
)

// host is what the default heuristic look at.
type host struct {
	Cores
	features microkernel.Features
	isa      microkernel.ISA
	beside   []microkernel.ISA               // of other workers of the plan
	pairs    profiles.PairRates              // zero where they were not measured
	attend   profiles.AttendRates            // of prompts, as far as it was measured
	steps    profiles.AttendRates            // of single tokens
	spaces   map[spaceKey][]microkernel.Spec // what candidates has listed so far
	chosen   map[choice]microkernel.Spec     // what kernel has found so far
}

// isas are the instruction sets that the options ask for, refused where the host lacks one.
func (o Options) isas(p *profiles.Profile) (plans.WorkerISAs, error) {
	isas, err := plans.ParseWorkerISAs(o.ISA)
	if err != nil {
		return isas, err
	}
	return isas, isas.Check(p.Features(), math.MaxInt)
}

// newHost looks at a machine under an instruction set, with the caches of a PU.
func newHost(p *profiles.Profile, isa microkernel.ISA, pu int) (host, error) {
	have := p.Features()
	h := host{features: have, isa: isa, spaces: map[spaceKey][]microkernel.Spec{},
		chosen: map[choice]microkernel.Spec{}}
	if !have.Supports(isa) {
		return h, fmt.Errorf("%w: this host has no %s, it has %v", plans.ErrISA, h.isa, have.ISAs())
	}
	h.pairs, _ = p.PairRates(h.isa)
	h.attend, h.steps = p.AttendRates(h.isa), p.AttendStepRates(h.isa)
	h.Cores = coresOf(p, h.isa, pu)
	return h, nil
}

// coresOf asks for the caches of a PU, and for the rates of an instruction set.
func coresOf(p *profiles.Profile, isa microkernel.ISA, pu int) Cores {
	m := roofline.NewMachine(p)
	return Cores{L1: int(m.L1().Value), L2: int(m.L2(pu).Value), Rates: ratesOf(m.Rates(isa))}
}

// firstPU is the first usable PU, -1 where there is none.
func firstPU(p *profiles.Profile) int {
	if usable := p.UsablePUs(); len(usable) > 0 {
		return usable[0]
	}
	return -1
}

type spaceKey struct {
	isa     microkernel.ISA
	compute microkernel.Compute
	b       microkernel.WeightType
}

// candidates lists the tiles that kernel chooses from.
func (h host) candidates(k spaceKey) []microkernel.Spec {
	list, ok := h.spaces[k]
	if !ok {
		list = microkernel.SpaceOf(h.features, k.isa, k.compute, k.b, func(s microkernel.Spec) bool {
			return (s.NR <= maxTileColumns || s.MatrixUnit()) && h.plain(s)
		})
		h.spaces[k] = list
	}
	return list
}

// integers says that int8 arithmetic serves a quantized type better than float32 on this CPU: at M
// = 1 it must keep up with the memory, at M = 512 with float32. With VPDPBUSD, and with SDOT of
// arm64, it does both for every type. The multiply-add of AVX-512 takes more instructions for
// eight-bit weights, whose signs it must move, than float32 does: q8_0 reaches 0.79 of float32 at M
// = 512, the other types 0.77 (iq4_nl) to 1.45 (q4_0), and at M = 1 they need it. AVX2 has a third
// port for integers. It asks the CPU and not the instruction set of the plan, so that --isa changes
// no bits.
func (h host) integers(t microkernel.WeightType) bool {
	switch {
	case h.features.Has(microkernel.HasVNNI), h.features.Has(microkernel.HasAVXVNNI),
		h.features.Has(microkernel.HasDotProd):
		return true
	case h.features.Has(microkernel.HasAVX512):
		return t.Desc().Bits() < 8
	}
	return h.features.Has(microkernel.HasAVX2)
}

// rangeEnds are the last M of the ranges below the open one, which is laid out for openM rows.
var rangeEnds = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 28, 32, 64, 96, 128, 192, 256, 384, 512}

const openM = 1024

// widenFrom is the M from which a slice of narrow weights is widened once instead of in every tile.
// Measured on 2048x2048, one core, weights from memory: q8_0 and q4_0 gain 3 % at 40 rows and 25 %
// at 64; f16, which one instruction converts, breaks even at 96; bf16, which is widened by shifts,
// still loses 14 % at 128.
func widenFrom(t microkernel.WeightType) int {
	switch {
	case t.Quantized():
		return streamTo + 1
	case t.Desc().Float == qtype.Half:
		return 97
	}
	return 257
}

// rules makes the table of a weight: adjacent ranges of one schedule are one rule.
func (h host) rules(k plans.WeightKey, t microkernel.WeightType, c microkernel.Compute) ([]plans.Rule, error) {
	var rules []plans.Rule
	lo := 1
	for i := 0; i <= len(rangeEnds); i++ {
		hi, m := 0, openM
		if i < len(rangeEnds) {
			hi, m = rangeEnds[i], rangeEnds[i]
		}
		s, err := h.schedule(k, t, c, m)
		if err != nil {
			return nil, err
		}
		if n := len(rules); n > 0 && rules[n-1].Schedule == s {
			rules[n-1].MHi = hi
		} else {
			rules = append(rules, plans.Rule{MLo: lo, MHi: hi, Schedule: s})
		}
		lo = hi + 1
	}
	return rules, nil
}

// schedule is the heuristic for m rows.
func (h host) schedule(k plans.WeightKey, t microkernel.WeightType, c microkernel.Compute, m int) (plans.Schedule,
	error) {
	widen := c == microkernel.ComputeF32 && t != microkernel.F32 && m >= widenFrom(t) && h.isa.Generates()
	s := plans.Schedule{Widen: widen}
	b := t
	if s.Widen {
		b = microkernel.F32
	}
	var err error
	if s.Kernel, err = h.kernel(b, c, m, k.N, s.Widen); err != nil {
		return s, err
	}
	s.Kernel = h.Form(s.Kernel, m, s.Widen)
	h.layOut(&s, k, t, m)
	return s, nil
}

// maxTileColumns bounds the columns of a tile: four panels are as many streams as the prefetchers
// of older cores follow next to the activations. Matrix units take panels one by one.
const (
	maxTileColumns = 4 * microkernel.PanelWidth
	maxUnitNR      = 8 * microkernel.PanelWidth
)

// choice is what a tile is chosen for.
type choice struct {
	b     microkernel.WeightType
	c     microkernel.Compute
	m, n  int // n beyond the widest tile counts as that
	widen bool
}

// kernel is best, asked once for weights of one type: a model has several, whose n is beyond every
// tile.
func (h host) kernel(b microkernel.WeightType, c microkernel.Compute, m, n int, widen bool) (microkernel.Spec,
	error) {
	key := choice{b, c, m, min(n, maxUnitNR), widen}
	if s, ok := h.chosen[key]; ok {
		return s, nil
	}
	s, err := h.best(key)
	if err == nil {
		h.chosen[key] = s
	}
	return s, err
}

// best picks the tile for m rows among the legal ones: by estimated time, then the most rows that
// fit, since a kernel runs fewer rows as well. Where the instruction set has no such kernel,
// narrower ones are asked.
func (h host) best(w choice) (microkernel.Spec, error) {
	rates := h.ratesFor(w)
	for _, isa := range h.isas() {
		best, least, vectors := microkernel.Spec{}, 0.0, 0.0
		take := func(s microkernel.Spec, cycles float64) {
			if least == 0 || cycles < least || cycles == least && larger(s, best) {
				best, least = s, cycles
			}
		}
		list := h.candidates(spaceKey{isa, w.c, w.b})
		for s := range rates.likely(w, list) {
			asks := rates.prefetched(s, w.m, w.widen)
			cycles := rates.rowCycles(asks, w.m, w.widen)
			if s.DequantizesOnce() {
				cycles *= onceGain
			}
			take(asks, cycles)
			if each := rates.tileCycles(s, s.MR) / float64(s.MR); vectors == 0 || each < vectors {
				vectors = each
			}
		}
		for s := range w.filled(list, true) {
			s = h.prefetched(s, w.m, w.widen)
			take(s, h.unitCycles(s, w.m, vectors))
		}
		if least > 0 {
			return best, nil
		}
	}
	return microkernel.Spec{}, fmt.Errorf("no %s kernel for %s weights in %s", h.isa, w.b, w.c)
}

// ratesFor is the rates that tiles are weighed by: those of ports for integers, and where
// multiplying takes longer than reading. Counting instructions takes milliseconds of a start.
func (h host) ratesFor(w choice) Rates {
	r := h.Rates
	if !w.c.Quantizes() || w.m <= streamTo {
		r.Ports = roofline.PortRates{}
	}
	return r
}

// unlikely is how many times the best one's time a tile may take by the formulas that stand for its
// instructions, to have these counted, which takes some 0.1 ms. Ports have moved tiles by up to
// 1.19.
const unlikely = 1.35

// likely are the tiles on vectors that may be the best: all where no rates of ports are known.
func (r Rates) likely(w choice, list []microkernel.Spec) iter.Seq[microkernel.Spec] {
	all := w.filled(list, false)
	if !r.Ports.Known() {
		return all
	}
	by, least := r, math.Inf(1)
	by.Ports = roofline.PortRates{}
	reckoned := func(s microkernel.Spec) float64 { return by.rowCycles(by.prefetched(s, w.m, w.widen), w.m, w.widen) }
	for s := range all {
		least = min(least, reckoned(s))
	}
	return func(yield func(microkernel.Spec) bool) {
		for s := range all {
			if reckoned(s) <= unlikely*least && !yield(s) {
				return
			}
		}
	}
}

// filled are the tiles on a matrix unit or those on vectors of which no panel would stay empty,
// with those that unpack once where there are many rows.
func (w choice) filled(list []microkernel.Spec, unit bool) iter.Seq[microkernel.Spec] {
	return func(yield func(microkernel.Spec) bool) {
		for _, s := range list {
			if s.DequantizesOnce() && w.m < residentFrom {
				continue // too few rows share what was unpacked
			}
			if s.MatrixUnit() == unit && s.NR < w.n+microkernel.PanelWidth && !yield(s) {
				return
			}
		}
	}
}

// larger says which of two tiles that take equally long is the one to have.
func larger(s, than microkernel.Spec) bool {
	if s.NR == than.NR {
		return s.MR > than.MR
	}
	return s.MatrixUnit() && s.NR > than.NR // panels share what is done for the rows
}

// isas is the instruction set and the ones below it that the host has, widest first.
func (h host) isas() []microkernel.ISA {
	all := h.features.ISAs()
	for i, isa := range all {
		if isa == h.isa {
			return all[i:]
		}
	}
	return []microkernel.ISA{h.isa}
}

// plain leaves axes that only measurement can decide at their ordinary value: four k, or pairs of
// them, an iteration, and broadcasts into registers, or lanes of registers where the multiply-add
// takes them. Matrix units are taken for bytes where their rate was measured.
func (h host) plain(s microkernel.Spec) bool {
	if s.MatrixUnit() {
		return s.Compute == microkernel.ComputeInt8 && h.UnitGain > 0
	}
	ku := 4
	if s.Compute == microkernel.ComputeBF16 {
		ku = 8 // four pairs
	}
	return (s.OrdinaryForm() || s.DequantizesOnce()) && (s.B.Quantized() || !s.ISA.Generates() || s.KU == ku)
}
