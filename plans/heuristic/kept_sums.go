package heuristic

import (
	"sandwich/microkernel"
	"sandwich/roofline"
)

// integersPay reports whether the path ComputeInt8K on a matrix unit is measured to be faster than
// other integer paths by the gain that a unit must have (unitGain).
func (h host) integersPay() bool {
	rival := max(h.kernels[microkernel.Int8BlockKernel], h.kernels[microkernel.Int8GroupKernel])
	rate := max(h.kernels[microkernel.Int8KKernel], h.kernels[microkernel.Int8KOverlapKernel])
	return rival > 0 && rate >= unitGain*rival
}

// sumsGain is the minimum measured gain of exact integer sums for which they are chosen on vectors,
// both with many rows and with one. It is larger than the noise, so that no phase loses.
const sumsGain = 1.05

// sumsPay reports whether the path ComputeInt8K is measured to be faster on vectors than
// ComputeInt8Superblock. It depends on the CPU and not on the instruction set of the plan.
func (h host) sumsPay(t microkernel.WeightType) bool {
	many, step := sumsGains(h.integers, t)
	return many >= sumsGain && step >= sumsGain
}

// sumsGains returns the rates of exact integer sums on vectors divided by those of superblock
// activations, with many rows and with one, or zeros if they were not measured.
func sumsGains(rates roofline.KernelRates, t microkernel.WeightType) (many, step float64) {
	for _, k := range microkernel.VectorIntegers() {
		group, one := max(rates[k.Group], rates[k.Once]), rates[k.GroupStep]
		if k.Weights == t && group > 0 && one > 0 {
			return rates[k.Many] / group, rates[k.Step] / one
		}
	}
	return 0, 0
}

// tilesPay reports whether the path ComputeBF16Tile is measured to be faster than float32 and other
// dot products of bfloat16 by the gain for which their rounding is accepted (pairGain).
func (h host) tilesPay() bool {
	rival := max(h.bf16.F32, h.bf16.BF16)
	return rival > 0 && h.kernels[microkernel.BF16TileKernel] >= pairGain*rival &&
		h.hasKernels(microkernel.ComputeBF16Tile, microkernel.BF16)
}
