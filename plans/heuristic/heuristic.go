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

// host holds the properties of a machine that the heuristic uses.
type host struct {
	Cores
	features microkernel.Features
	isa      microkernel.ISA
	others   []microkernel.ISA               // of the plan's other worker kinds
	pairs    profiles.PairRates              // zero if not measured
	attend   profiles.AttendRates            // of prompts, as far as measured
	steps    profiles.AttendRates            // of single tokens
	spaces   map[spaceKey][]microkernel.Spec // results of candidates
	chosen   map[choice]microkernel.Spec     // results of kernel
}

// isas returns the instruction sets in the options. It fails if the host lacks one.
func (o Options) isas(p *profiles.Profile) (plans.WorkerISAs, error) {
	isas, err := plans.ParseWorkerISAs(o.ISA)
	if err != nil {
		return isas, err
	}
	return isas, isas.Check(p.Features(), math.MaxInt)
}

// newHost returns the properties of a machine for an instruction set, with the caches of a PU.
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

// coresOf returns the cache sizes of a PU and the rates of an instruction set.
func coresOf(p *profiles.Profile, isa microkernel.ISA, pu int) Cores {
	m := roofline.NewMachine(p)
	return Cores{L1: int(m.L1().Value), L2: int(m.L2(pu).Value), Rates: ratesOf(m.Rates(isa))}
}

// firstPU returns the first usable PU, or -1.
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

// candidates returns the kernels that kernel chooses from.
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

// integers reports whether int8 arithmetic is the better path for a quantized type on this CPU: it
// must keep up with memory at M = 1 and with float32 at M = 512. Dot product instructions
// (VPDPBUSD, SDOT) do for every type. With AVX-512 multiply-adds, types of eight bits need more
// instructions than float32 and are excluded. AVX2 cores have a third port for integers. The choice
// depends on the CPU and not on the instruction set of the plan, so that --isa changes no bits.
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

// rangeEnds lists the last M of each range of rows. The last, open range is laid out for openM
// rows.
var rangeEnds = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 28, 32, 64, 96, 128, 192, 256, 384, 512}

const openM = 1024

// widenFrom returns the M from which a slice of weights is dequantized once instead of in every
// tile.
func widenFrom(t microkernel.WeightType) int {
	switch {
	case t.Quantized():
		return streamTo + 1
	case t.Desc().Float == qtype.Half:
		return 97
	}
	return 257
}

// rules returns the rules of a weight. Adjacent ranges with equal schedules become one rule.
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

// schedule returns the default schedule for m rows.
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

// maxTileColumns limits the columns of a tile to four panels, as many streams as the prefetchers of
// older cores follow in addition to the activations. Matrix units read one panel at a time, up to
// maxUnitNR columns.
const (
	maxTileColumns = 4 * microkernel.PanelWidth
	maxUnitNR      = 8 * microkernel.PanelWidth
)

// choice is the key of a choice of kernel.
type choice struct {
	b     microkernel.WeightType
	c     microkernel.Compute
	m, n  int // n is capped at the widest tile
	widen bool
}

// kernel returns the best kernel for m rows and n columns. It caches results.
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

// best returns the legal kernel with the lowest estimated time; of equal ones that with the most
// rows. If the instruction set has no such kernel, it tries narrower ones.
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
			form := rates.prefetched(s, w.m, w.widen)
			cycles := rates.rowCycles(form, w.m, w.widen)
			if s.DequantizesOnce() {
				cycles *= onceGain
			}
			take(form, cycles)
			if each := rates.tileCycles(s, s.MR) / float64(s.MR); vectors == 0 || each < vectors {
				vectors = each
			}
		}
		for s := range w.filled(list, true) {
			s = h.prefetched(s, w.m, w.widen)
			if s.KeepsSums() {
				take(s, rates.keptCycles(s, w.m))
			} else {
				take(s, h.unitCycles(s, w.m, vectors))
			}
		}
		if least > 0 {
			return best, nil
		}
	}
	return microkernel.Spec{}, fmt.Errorf("no %s kernel for %s weights in %s", h.isa, w.b, w.c)
}

// ratesFor returns the rates for a choice. Port throughputs are used only for integer kernels with
// more than streamTo rows, since counting instructions takes milliseconds at startup.
func (h host) ratesFor(w choice) Rates {
	r := h.Rates
	if !w.c.Quantizes() || w.m <= streamTo {
		r.Ports = roofline.PortRates{}
	}
	return r
}

// unlikely is the ratio to the lowest formula estimate above which a kernel's instructions are not
// counted. It is larger than the corrections that counting makes.
const unlikely = 1.35

// likely returns the vector kernels that may be the best: all if port throughputs are unknown.
func (r Rates) likely(w choice, list []microkernel.Spec) iter.Seq[microkernel.Spec] {
	all := w.filled(list, false)
	if !r.Ports.Known() {
		return all
	}
	by, least := r, math.Inf(1)
	by.Ports = roofline.PortRates{}
	estimated := func(s microkernel.Spec) float64 { return by.rowCycles(by.prefetched(s, w.m, w.widen), w.m, w.widen) }
	for s := range all {
		least = min(least, estimated(s))
	}
	return func(yield func(microkernel.Spec) bool) {
		for s := range all {
			if estimated(s) <= unlikely*least && !yield(s) {
				return
			}
		}
	}
}

// filled returns the kernels on a matrix unit, or those on vectors, whose panels all have columns.
// Kernels with cached dequantization are included from residentFrom rows.
func (w choice) filled(list []microkernel.Spec, unit bool) iter.Seq[microkernel.Spec] {
	return func(yield func(microkernel.Spec) bool) {
		for _, s := range list {
			if s.DequantizesOnce() && w.m < residentFrom {
				continue // too few rows share the unpacked weights
			}
			if s.MatrixUnit() == unit && s.NR < w.n+microkernel.PanelWidth && !yield(s) {
				return
			}
		}
	}
}

// larger reports whether s is preferred to another kernel with the same estimate.
func larger(s, than microkernel.Spec) bool {
	if s.NR == than.NR {
		return s.MR > than.MR
	}
	return s.MatrixUnit() && s.NR > than.NR // panels share the work per row
}

// isas returns the instruction set and the narrower ones that the host has, widest first.
func (h host) isas() []microkernel.ISA {
	all := h.features.ISAs()
	for i, isa := range all {
		if isa == h.isa {
			return all[i:]
		}
	}
	return []microkernel.ISA{h.isa}
}

// plain reports whether a kernel has default values of the parameters that only measurements can
// decide: unrolling by four k or four pairs, and the ordinary form. Kernels on matrix units are
// included for int8 if their rate was measured.
func (h host) plain(s microkernel.Spec) bool {
	if s.MatrixUnit() {
		return s.KeepsSums() || s.Compute == microkernel.ComputeInt8 && h.UnitGain > 0
	}
	ku := 4
	if s.Compute == microkernel.ComputeBF16 {
		ku = 8 // four pairs
	}
	return (s.OrdinaryForm() || s.DequantizesOnce()) && (s.B.Quantized() || !s.ISA.Generates() || s.KU == ku)
}
