package heuristic

import (
	"fmt"

	"sandwich/microkernel"
	"sandwich/plans"
)

// integerPath returns the integer path of a quantized type: superblock activations if the kernels
// of all workers have them, else int8. A matrix unit that is faster, or was not measured, has no
// superblock kernels and uses int8.
func (h host) integerPath(t microkernel.WeightType) microkernel.Compute {
	unit := h.features.Has(microkernel.HasAMX) && (h.UnitGain == 0 || h.UnitGain > unitGain)
	if !unit && h.hasSuperblock(t) {
		return microkernel.ComputeInt8Superblock
	}
	return microkernel.ComputeInt8
}

// onceGain is the minimum gain in counted instructions for which a kernel with cached
// dequantization is chosen. It accounts for reading the unpacked weights, which are larger, from L1
// again for each row tile.
const onceGain = 1.15

// hasSuperblock reports whether the kernels of all workers have superblock activations for a type:
// all workers must round a product alike.
func (h host) hasSuperblock(t microkernel.WeightType) bool {
	if !microkernel.ComputeInt8Superblock.Takes(t) {
		return false
	}
	for _, isa := range h.workers() {
		if len(h.candidates(spaceKey{isa, microkernel.ComputeInt8Superblock, t})) == 0 {
			return false
		}
	}
	return true
}

// checkSuperblock rejects superblock activations if the model has no weights for them or a worker
// has no kernels.
func (h host) checkSuperblock(s plans.ModelShape) error {
	const path = microkernel.ComputeInt8Superblock
	for _, k := range s.Unique() {
		t, err := microkernel.ParseWeightType(k.Type)
		if err != nil || !path.Takes(t) {
			continue
		}
		if h.hasSuperblock(t) {
			return nil
		}
		return fmt.Errorf("compute %s: %s on this CPU (%s) has no kernels for it: leave --compute out", path, h.isa,
			h.features)
	}
	return fmt.Errorf("compute %s is for models with weights in blocks of %d, but %s has none: leave --compute out",
		path,
		microkernel.ActQ8Group, s.Title())
}
