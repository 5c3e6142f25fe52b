package heuristic

import (
	"fmt"

	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/roofline"
)

// pathOf returns the compute path of a weight: that in the options, else the default.
func (o Options) pathOf(k plans.WeightKey, h host) (microkernel.Compute, error) {
	for _, w := range o.Weights {
		if w.WeightKey == k {
			return w.Compute, nil
		}
	}
	t, err := microkernel.ParseWeightType(k.Type)
	if err != nil {
		return microkernel.ComputeF32, err
	}
	return defaultCompute(o.Compute, t, h)
}

// defaultCompute returns the default compute path of a weight type: int8 for quantized weights and
// bf16 for weights of that type if it is the faster path, else f32. Int8 depends on the CPU and not
// on the instruction set of the plan, so that --isa changes no bits.
func defaultCompute(option string, t microkernel.WeightType, h host) (microkernel.Compute, error) {
	switch option {
	case "", "auto":
		if t.Quantized() && h.features.PrefersInt8(t.Desc().Bits()) {
			return h.integerPath(t), nil
		}
		if t == microkernel.BF16 && h.tilesPay() {
			return microkernel.ComputeBF16Tile, nil
		}
		if t == microkernel.BF16 && worthwhile(h.bf16) && h.hasKernels(microkernel.ComputeBF16, microkernel.BF16) {
			return microkernel.ComputeBF16, nil
		}
		return microkernel.ComputeF32, nil
	}
	c, err := microkernel.ParseCompute(option)
	if err != nil {
		return c, err
	}
	switch {
	case c.Takes(t):
	case c == microkernel.ComputeInt8:
		return microkernel.ComputeF32, nil // not quantized
	default:
		return defaultCompute("", t, h) // a type without this path
	}
	return c, nil
}

// checkCompute rejects the paths of single types if the model has no weights for the path or the
// CPU no kernels.
func (h host) checkCompute(option string, s plans.ModelShape) error {
	switch option {
	case microkernel.ComputeInt8Superblock.String():
		return h.checkSuperblock(s)
	case microkernel.ComputeInt8K.String():
		return h.checkIntegers(s)
	case microkernel.ComputeBF16Tile.String():
		return h.checkTiles(s)
	case microkernel.ComputeBF16.String():
	default:
		return nil
	}
	if !has(s, microkernel.BF16) {
		return fmt.Errorf("compute %s is for models with bf16 weights, but %s has none: leave --compute out",
			option, s.Title())
	}
	if !h.hasKernels(microkernel.ComputeBF16, microkernel.BF16) {
		return fmt.Errorf("compute %s needs a dot product of bfloat16 (avx512_bf16, or bf16 on arm64), but %s "+
			"on this CPU (%s) has none: leave --compute out", option, h.isa, h.features)
	}
	return nil
}

// integerPath returns the integer path of a quantized type: exact integer sums if a matrix unit, or
// without one the vectors, are faster by them, else superblock activations if the kernels of all
// workers have them, else int8. A matrix unit that is faster, or was not measured, has no
// superblock kernels and uses int8.
func (h host) integerPath(t microkernel.WeightType) microkernel.Compute {
	if microkernel.ComputeInt8K.Takes(t) && h.integersPay() && h.hasKernels(microkernel.ComputeInt8K, t) {
		return microkernel.ComputeInt8K
	}
	unit := h.features.HasMatrixUnit() && (h.UnitGain == 0 || h.UnitGain > unitGain)
	if !unit && h.sumsPay(t) && h.hasKernels(microkernel.ComputeInt8K, t) {
		return microkernel.ComputeInt8K
	}
	if !unit && h.hasKernels(microkernel.ComputeInt8Superblock, t) {
		return microkernel.ComputeInt8Superblock
	}
	return microkernel.ComputeInt8
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
		if h.hasKernels(microkernel.ComputeInt8Superblock, t) {
			return nil
		}
		return fmt.Errorf("compute %s: %s on this CPU (%s) has no kernels for it: leave --compute out", path, h.isa,
			h.features)
	}
	return fmt.Errorf("compute %s is for models with weights in blocks of %d, but %s has none: leave --compute out",
		path,
		microkernel.ActQ8Group, s.Title())
}

// pairGain is the minimum throughput of bf16 dot products relative to float32 for which their
// rounding is accepted. CPUs have half, the same or twice the rate, so noise does not affect the
// choice.
const pairGain = 1.3

// worthwhile reports whether bf16 weights should use bf16 dot products.
func worthwhile(r roofline.BF16Rates) bool { return r.F32 > 0 && r.BF16 >= pairGain*r.F32 }

// has reports whether a product of the model uses weights of a type.
func has(s plans.ModelShape, t microkernel.WeightType) bool {
	for _, k := range s.Unique() {
		if k.Type == t.String() {
			return true
		}
	}
	return false
}

// checkIntegers returns an error if the model has no weights for the path ComputeInt8K, or a worker
// has no kernels of it.
func (h host) checkIntegers(s plans.ModelShape) error {
	const path = microkernel.ComputeInt8K
	for _, k := range s.Unique() {
		t, err := microkernel.ParseWeightType(k.Type)
		if err != nil || !path.Takes(t) {
			continue
		}
		if h.hasKernels(path, t) {
			return nil
		}
		return fmt.Errorf("compute %s has no kernels for %s on this CPU (%s): leave it out", path, h.isa, h.features)
	}
	return fmt.Errorf("compute %s needs weights in blocks of %d with integer scales, and %s has none: leave it out",
		path, microkernel.ActQ8Group, s.Title())
}

// checkTiles returns an error if the model has no bf16 weights, or a worker has no kernels of the
// path ComputeBF16Tile.
func (h host) checkTiles(s plans.ModelShape) error {
	const path = microkernel.ComputeBF16Tile
	switch {
	case !has(s, microkernel.BF16):
		return fmt.Errorf("compute %s needs bf16 weights, and %s has none: leave it out", path, s.Title())
	case !h.hasKernels(path, microkernel.BF16):
		return fmt.Errorf("compute %s needs a matrix unit for bfloat16 (amx_int8 and avx512_bf16), and %s on this CPU "+
			"(%s) has none: leave it out", path, h.isa, h.features)
	}
	return nil
}
