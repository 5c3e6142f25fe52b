package sim

import (
	"time"

	"sandwich/microkernel/devgen"
)

// Roofline predicts the time of kernels from two ceilings: a matrix product takes the time of its
// arithmetic or of reading its weights, whichever is longer.
type Roofline struct {
	FLOPs       float64       // per second
	Bandwidth   float64       // bytes per second
	WeightBytes float64       // of a weight
	Other       time.Duration // of a kernel that is no matrix product
	// Static divides the time of the arithmetic of products whose shape is a constant of the
	// kernel; 0: 1.
	Static float64
}

// KernelBytes is a function for [Config]: a product reads its weights.
func (r Roofline) KernelBytes(k *devgen.Kernel, _ [3]int, push []uint32) float64 {
	size := map[string]float64{}
	for i, name := range k.Push {
		size[name] = float64(push[i])
	}
	if size["m"] == 0 {
		return 0
	}
	return size["n"] * size["k"] * r.WeightBytes
}

// KernelDuration is a function for [Config]. A product has the push words m, n and k.
func (r Roofline) KernelDuration(k *devgen.Kernel, _ [3]int, push []uint32) time.Duration {
	size := map[string]float64{}
	for i, name := range k.Push {
		size[name] = float64(push[i])
	}
	values := size["n"] * size["k"]
	if size["m"] == 0 || values == 0 {
		return r.Other
	}
	flops := r.FLOPs
	if k.Static && r.Static > 0 {
		flops *= r.Static
	}
	return time.Duration(1e9 * max(2*size["m"]*values/flops, values*r.WeightBytes/r.Bandwidth))
}
