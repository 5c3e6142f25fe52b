package heuristic

import (
	"sandwich/microkernel"
	"sandwich/microkernel/devgen/weights"
)

// sharedPaths are the paths that a weight may use on both the cores and a device, fastest on most
// cores first.
var sharedPaths = []microkernel.Compute{microkernel.ComputeInt8Superblock, microkernel.ComputeInt8,
	microkernel.ComputeInt8K, microkernel.ComputeF32}

// devicePath returns the path of a weight type if a device runs a phase: the path of the cores if
// device kernels have it, else the first of sharedPaths that both have, else the path of the
// cores. Quantized weights use float32 only if both have no integer path in common.
func (h host) devicePath(t microkernel.WeightType, cores microkernel.Compute) microkernel.Compute {
	if weights.Supports(t, cores) == nil && (cores.Quantizes() || !t.Quantized()) {
		return cores
	}
	for _, c := range sharedPaths {
		if weights.Supports(t, c) == nil && h.hasKernels(c, t) {
			return c
		}
	}
	return cores
}
