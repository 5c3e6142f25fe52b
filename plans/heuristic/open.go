package heuristic

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/profiles"
	"sandwich/roofline"
)

// Choice describes the path of bf16 weights at the measured rates, and why. tiles is the rate of
// kernels of the path ComputeBF16Tile, or 0.
func Choice(r roofline.BF16Rates, tiles float64) string {
	if tiles >= pairGain*max(r.F32, r.BF16) {
		return fmt.Sprintf("bf16 weights use tile products of bf16, with different rounding (--compute f32 is exact): "+
			"they reach %.4g GFLOP/s on 1 PU, %.2f times the %.4g of f32", tiles/1e9, tiles/r.F32, r.F32/1e9)
	}
	if worthwhile(r) {
		return fmt.Sprintf("bf16 weights use bf16 dot products, with different rounding "+
			"(--compute f32 is exact): %s", r)
	}
	return fmt.Sprintf("bf16 weights use float32: %s; bf16 dot products need %g times the rate", r,
		pairGain)
}

// PairsOpen reports whether the compute paths of a model depend on measured rates: it has bf16
// weights, and the CPU has bf16 dot products.
func PairsOpen(p *profiles.Profile, s plans.ModelShape, o Options) bool {
	h, err := o.mainHost(p)
	return err == nil && (o.Compute == "" || o.Compute == "auto") && has(s, microkernel.BF16) &&
		h.hasKernels(microkernel.ComputeBF16, microkernel.BF16)
}

// IntegersOpen reports whether the compute path of a model's quantized weights depends on measured
// rates: a matrix unit has kernels of exact integer sums for one of their types, or SumsOpen does.
func IntegersOpen(p *profiles.Profile, s plans.ModelShape, o Options) bool {
	h, err := o.mainHost(p)
	if err != nil || o.Compute != "" && o.Compute != "auto" {
		return false
	}
	unit := microkernel.PeakSpec{ISA: h.isa, Type: microkernel.Int8KKernel}
	return slices.Contains(microkernel.PeakSpecs(h.features), unit) &&
		slices.ContainsFunc(s.Unique(), func(k plans.WeightKey) bool {
			t, err := microkernel.ParseWeightType(k.Type)
			return err == nil && microkernel.ComputeInt8K.Takes(t)
		}) || SumsOpen(p, s, o)
}

// SumsOpen reports whether the path of weights of the types of microkernel.VectorIntegers depends
// on the rates of its kernels on vectors.
func SumsOpen(p *profiles.Profile, s plans.ModelShape, o Options) bool {
	return (o.Compute == "" || o.Compute == "auto") && slices.ContainsFunc(microkernel.VectorIntegers(),
		func(k microkernel.IntegerKernels) bool {
			return has(s, k.Weights) && slices.Contains(microkernel.PeakSpecs(p.Features()),
				microkernel.PeakSpec{ISA: p.Features().Best(), Type: k.Many})
		})
}

// SumsChoice describes the path that the weights of SumsOpen use at the rates of a profile, and
// why.
func SumsChoice(p *profiles.Profile, s plans.ModelShape) string {
	rates, said := roofline.NewMachine(p).KernelRates(p.Features().Best()), []string{}
	for _, k := range microkernel.VectorIntegers() {
		many, step := sumsGains(rates, k.Weights)
		if !has(s, k.Weights) || many == 0 {
			continue
		}
		uses := microkernel.ComputeInt8Superblock
		if many >= sumsGain && step >= sumsGain {
			uses = microkernel.ComputeInt8K
		}
		said = append(said, fmt.Sprintf("%s weights use %s: %s is %.2f times as fast as %s with many rows and %.2f "+
			"with one", k.Weights, uses, microkernel.ComputeInt8K, many, microkernel.ComputeInt8Superblock, step))
	}
	return strings.Join(said, "; ")
}

// SumsKnown reports whether a profile has the rates of SumsOpen.
func SumsKnown(p *profiles.Profile) bool {
	rates := roofline.NewMachine(p).KernelRates(p.Features().Best())
	peaks := microkernel.PeakSpecs(p.Features())
	return !slices.ContainsFunc(microkernel.IntegerTypes(), func(t string) bool {
		return rates[t] == 0 && slices.Contains(peaks, microkernel.PeakSpec{ISA: p.Features().Best(), Type: t})
	})
}

// mainHost returns the properties of the machine for the main class of workers on all usable PUs.
func (o Options) mainHost(p *profiles.Profile) (host, error) {
	isas, err := o.isas(p)
	if err != nil {
		return host{}, err
	}
	list, err := o.kinds(p, p.UsablePUs().Slice(), isas)
	if err != nil {
		return host{}, err
	}
	if len(list) == 0 {
		return host{}, errors.New("no PU is available to this process")
	}
	h, err := newHost(p, list[0].isa, firstPU(p))
	for _, k := range list[1:] {
		h.others = append(h.others, k.isa)
	}
	return h, err
}

// AttentionChoice describes the dot product that attention uses at the measured rates, and why.
func AttentionChoice(o Options, r, steps roofline.AttentionRates) string {
	kv, _ := o.cache() // AttentionOpen has checked it
	best := bestAttention(kv, r, steps)
	if best == microkernel.AttendF32 {
		return fmt.Sprintf("attention uses float32: no other dot product is %g times as fast on prompts and keeps "+
			"%g of the rate on single tokens", attendGain, attendStepLoss)
	}
	return fmt.Sprintf("%s, with different rounding (--attention f32 is exact)", r.Gain(best))
}

// AttentionOpen reports whether the dot product of attention depends on measured rates.
func AttentionOpen(p *profiles.Profile, s plans.ModelShape, o Options) bool {
	h, err := o.mainHost(p)
	if err != nil || o.Attend != "" && o.Attend != "auto" {
		return false
	}
	kv, err := o.cache()
	if err != nil {
		return false
	}
	var paths []microkernel.Compute
	for _, k := range s.Unique() {
		c, err := o.pathOf(k, h)
		if err != nil {
			return false
		}
		if k.Type == microkernel.BF16.String() && PairsOpen(p, s, o) {
			c = microkernel.ComputeBF16 // possible, depending on rates
		}
		paths = append(paths, c)
	}
	return h.mayRound(kv, paths)
}

// AttentionKnown reports whether a profile has the rates on which the dot product of attention
// depends for the cache of the options.
func AttentionKnown(p *profiles.Profile, isa microkernel.ISA, o Options) bool {
	kv, err := o.cache()
	m := roofline.NewMachine(p)
	r, steps := m.AttentionRates(isa), m.AttentionStepRates(isa)
	for _, d := range append(alternatives(kv), microkernel.AttendF32) {
		if d.On(isa, p.Features()) && (r[d] == 0 || steps[d] == 0) {
			return false
		}
	}
	return err == nil
}
