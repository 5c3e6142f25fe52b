package heuristic

import (
	"fmt"

	"sandwich/microkernel"
	"sandwich/plans"
)

// integerPath is the path of integers for a quantized type: weights in blocks of 256 meet
// activations in blocks of as many, where the kernels of all workers have that. On a Zen 4 that
// makes products of 512 rows of q4_K and q6_K 1.07 and 1.12 times as fast. Where a matrix unit is
// the faster one (or nobody knows), which has no such kernels, activations keep blocks of 32.
func (h host) integerPath(t microkernel.WeightType) microkernel.Compute {
	unit := h.features.Has(microkernel.HasAMX) && (h.UnitGain == 0 || h.UnitGain > unitGain)
	if !unit && h.hasLong(t) {
		return microkernel.ComputeInt8Superblock
	}
	return microkernel.ComputeInt8
}

// onceGain is how many times as fast by its instructions a tile must be that unpacks weights once
// for all rows: what is unpacked is twice to four times as long as what is packed, and comes from
// the first-level cache anew for each row tile. On a Zen 4 (128 and 512 rows) 1.31, 1.28, 1.27 and
// 1.17 by instructions were 1.22, 1.10, 1.03 and 1.08 (iq2_xs, q3_K, q6_K, iq2_xxs), and 1.10 to
// 1.02 were 1.01 to 0.91 (q5_K, q2_K, q4_K, iq4_xs, iq3_s).
const onceGain = 1.15

// hasLong says that the kernels of all workers have the long blocks for a type: all must round a
// product alike.
func (h host) hasLong(t microkernel.WeightType) bool {
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

// checkLong refuses long blocks where the model has no weights for them, or a worker no kernels.
func (h host) checkLong(s plans.ModelShape) error {
	const path = microkernel.ComputeInt8Superblock
	for _, k := range s.Unique() {
		t, err := microkernel.ParseWeightType(k.Type)
		if err != nil || !path.Takes(t) {
			continue
		}
		if h.hasLong(t) {
			return nil
		}
		return fmt.Errorf("compute %s: %s on this CPU (%s) has no kernels of it: leave it out", path, h.isa, h.features)
	}
	return fmt.Errorf("compute %s is for models with weights in blocks of %d, and %s has none: leave it out", path,
		microkernel.ActQ8Group, s.Title())
}
