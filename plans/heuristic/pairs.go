package heuristic

import (
	"errors"
	"fmt"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/profiles"
)

// pairGain is the minimum throughput of bf16 dot products relative to float32 for which their
// rounding is accepted. CPUs have half, the same or twice the rate, so noise does not affect the
// choice.
const pairGain = 1.3

// worthwhile reports whether bf16 weights should use bf16 dot products.
func worthwhile(r profiles.PairRates) bool { return r.F32 > 0 && r.BF16 >= pairGain*r.F32 }

// Choice describes the path of bf16 weights at the measured rates, and why.
func Choice(r profiles.PairRates) string {
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
	return err == nil && (o.Compute == "" || o.Compute == "auto") && has(s, microkernel.BF16) && h.hasPairs()
}

// mainHost returns the properties of the machine for the main class of workers on all usable PUs.
func (o Options) mainHost(p *profiles.Profile) (host, error) {
	isas, err := o.isas(p)
	if err != nil {
		return host{}, err
	}
	list, err := o.kinds(p, p.UsablePUs(), isas)
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

// has reports whether a product of the model uses weights of a type.
func has(s plans.ModelShape, t microkernel.WeightType) bool {
	for _, k := range s.Unique() {
		if k.Type == t.String() {
			return true
		}
	}
	return false
}

// hasPairs reports whether the instruction sets of all workers have kernels with bf16 dot products
// on this CPU: all workers must round a product alike.
func (h host) hasPairs() bool {
	for _, isa := range h.workers() {
		if len(h.candidates(spaceKey{isa, microkernel.ComputeBF16, microkernel.BF16})) == 0 {
			return false
		}
	}
	return true
}
