// Package spirv translates kernels of package devgen to SPIR-V 1.6 for Vulkan 1.3.
//
// Modules need the features bufferDeviceAddress and shaderIntegerDotProduct, and shaderFloat64 with
// SoftFMA.
package spirv

import (
	"fmt"

	"sandwich/microkernel/devgen"
)

// Options select what a device needs to compute exactly. The zero value is a device whose
// operations are exact.
type Options struct {
	SoftFMA       bool // fma is not fused: compute it in float64
	SoftDiv       bool // division is not correctly rounded
	SoftSqrt      bool // square root is not correctly rounded
	KeepSubnormal bool // declare that subnormal numbers are kept; the device must support it
}

// Emit returns the module of a kernel with the entry point "main". Its push constants are the
// arguments of the dispatch: the device addresses of the bindings, 8 bytes each, then the push
// words.
func Emit(k *devgen.Kernel, o Options) ([]uint32, error) {
	if k.NeedsMatrixUnit() {
		return nil, fmt.Errorf("kernel %s: SPIR-V has no matrix unit", k.Name)
	}
	k = devgen.Lower(k, devgen.Soft{Div: o.SoftDiv, Sqrt: o.SoftSqrt, Half: true})
	e := &emitter{module: newModule(), k: k, o: o}
	e.declare()
	e.body(k.Body)
	return e.finish(), nil
}
