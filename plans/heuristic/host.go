package heuristic

import (
	"fmt"

	"sandwich/microkernel"
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
	bf16     roofline.BF16Rates              // zero if not measured
	attend   roofline.AttentionRates         // of prompts, as far as measured
	steps    roofline.AttentionRates         // of single tokens
	kernels  roofline.KernelRates            // as far as measured
	integers roofline.KernelRates            // of the widest instruction set; see sumsPay
	spaces   map[spaceKey][]microkernel.Spec // results of candidates
	chosen   map[choice]microkernel.Spec     // results of kernel
}

// newHost returns the properties of a machine for an instruction set, with the caches of a PU.
func newHost(p *profiles.Profile, isa microkernel.ISA, pu int) (host, error) {
	have := p.Features()
	h := host{features: have, isa: isa, spaces: map[spaceKey][]microkernel.Spec{},
		chosen: map[choice]microkernel.Spec{}}
	if !have.Supports(isa) {
		return h, fmt.Errorf("%w: this host has no %s, it has %v", plans.ErrISA, h.isa, have.ISAs())
	}
	m := roofline.NewMachine(p)
	h.bf16, _ = m.BF16Rates(isa)
	h.attend, h.steps = m.AttentionRates(isa), m.AttentionStepRates(isa)
	h.kernels, h.integers = m.KernelRates(isa), m.KernelRates(have.Best())
	h.Cores = coresOf(m, isa, pu)
	return h, nil
}

// coresOf returns the cache sizes of a PU and the rates of an instruction set.
func coresOf(m *roofline.Machine, isa microkernel.ISA, pu int) Cores {
	return Cores{L1: int(m.L1().Value), L2: int(m.L2(pu).Value), Rates: ratesOf(m.Rates(isa))}
}

// firstPU returns the first usable PU, or -1.
func firstPU(p *profiles.Profile) int { return p.UsablePUs().First() }

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

// maxTileColumns limits the columns of a tile to four panels, as many streams as the prefetchers of
// older cores follow in addition to the activations. Matrix units read one panel at a time, up to
// maxUnitNR columns.
const (
	maxTileColumns = 4 * microkernel.PanelWidth
	maxUnitNR      = 8 * microkernel.PanelWidth
)

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
// included for int8 if their rate was measured, and for form Overlap if it was the higher one.
func (h host) plain(s microkernel.Spec) bool {
	if s.Overlaps() {
		return h.overlapPays()
	}
	if s.MatrixUnit() {
		return s.KeepsSums() || s.Compute == microkernel.ComputeInt8 && h.UnitGain > 0
	}
	ku := 4
	if s.Compute == microkernel.ComputeBF16 {
		ku = 8 // four pairs
	}
	return (s.OrdinaryForm() || s.DequantizesOnce()) && (s.B.Quantized() || !s.ISA.Generates() || s.KU == ku)
}

// overlapPays reports whether unpacking during products is measured to be at least as fast as
// unpacking before them.
func (h host) overlapPays() bool {
	rate := h.kernels[microkernel.Int8KOverlapKernel]
	return rate > 0 && rate >= h.kernels[microkernel.Int8KKernel]
}

// workers returns the instruction sets of all worker kinds, the main class first.
func (h host) workers() []microkernel.ISA { return append([]microkernel.ISA{h.isa}, h.others...) }

// hasKernels reports whether all workers have kernels of a path for a type: they must round a
// product alike.
func (h host) hasKernels(c microkernel.Compute, t microkernel.WeightType) bool {
	if !c.Takes(t) {
		return false
	}
	for _, isa := range h.workers() {
		if len(h.candidates(spaceKey{isa, c, t})) == 0 {
			return false
		}
	}
	return true
}
