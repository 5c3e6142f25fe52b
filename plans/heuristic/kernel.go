package heuristic

import (
	"fmt"
	"iter"
	"math"

	"sandwich/microkernel"
	"sandwich/roofline"
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
		best, smallest, vectors := microkernel.Spec{}, 0.0, 0.0
		take := func(s microkernel.Spec, cycles float64) {
			if smallest == 0 || cycles < smallest || cycles == smallest && larger(s, best) {
				best, smallest = s, cycles
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
		if smallest > 0 {
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
	by, smallest := r, math.Inf(1)
	by.Ports = roofline.PortRates{}
	estimated := func(s microkernel.Spec) float64 { return by.rowCycles(by.prefetched(s, w.m, w.widen), w.m, w.widen) }
	for s := range all {
		smallest = min(smallest, estimated(s))
	}
	return func(yield func(microkernel.Spec) bool) {
		for s := range all {
			if estimated(s) <= unlikely*smallest && !yield(s) {
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

// onceGain is the minimum gain in counted instructions for which a kernel with cached
// dequantization is chosen. It accounts for reading the unpacked weights, which are larger, from L1
// again for each row tile.
const onceGain = 1.15
