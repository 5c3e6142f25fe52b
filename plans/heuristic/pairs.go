package heuristic

import (
	"errors"
	"fmt"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/profiles"
)

// pairGain is how many times the float32 rate the dot products of bf16 must reach to be worth their
// rounding. CPUs make them at half, the same or twice the rate, so that the threshold lies far from
// all that a noisy measurement says of either.
const pairGain = 1.3

// worthwhile says that bf16 weights should be multiplied in pairs.
func worthwhile(r profiles.PairRates) bool { return r.F32 > 0 && r.BF16 >= pairGain*r.F32 }

// Choice says in words which path bf16 weights take by these rates, and why.
func Choice(r profiles.PairRates) string {
	if worthwhile(r) {
		return fmt.Sprintf("bf16 weights are multiplied by dot products of bf16, with rounding of their own "+
			"(--compute f32 is exact): %s", r)
	}
	return fmt.Sprintf("bf16 weights are multiplied in float32: %s, and %g times would be worth the rounding", r,
		pairGain)
}

// PairsOpen says that the paths of a model depend on measured rates: it has bf16 weights, and the
// CPU has the dot products.
func PairsOpen(p *profiles.Profile, s plans.ModelShape, o Options) bool {
	h, err := o.mainHost(p)
	return err == nil && (o.Compute == "" || o.Compute == "auto") && has(s, microkernel.BF16) && h.hasPairs()
}

// mainHost is a machine as the main class of workers on all its PUs sees it.
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
		return host{}, errors.New("this process may use no PU")
	}
	h, err := newHost(p, list[0].isa, firstPU(p))
	for _, k := range list[1:] {
		h.beside = append(h.beside, k.isa)
	}
	return h, err
}

// has says that a product of the model reads weights of a type.
func has(s plans.ModelShape, t microkernel.WeightType) bool {
	for _, k := range s.Unique() {
		if k.Type == t.String() {
			return true
		}
	}
	return false
}

// hasPairs says that the instruction set has kernels of bf16 dot products on this CPU, and those of
// other workers, too: all must round a product alike.
func (h host) hasPairs() bool {
	for _, isa := range h.workers() {
		if len(h.candidates(spaceKey{isa, microkernel.ComputeBF16, microkernel.BF16})) == 0 {
			return false
		}
	}
	return true
}
