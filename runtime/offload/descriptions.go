package offload

import (
	"math"

	"sandwich/microkernel"
	"sandwich/microkernel/devgen"
	"sandwich/microkernel/devgen/kernels"
	"sandwich/runtime/device"
)

// description is a comparable description of a kernel, such as kernels.GEMM.
type description interface {
	Kernel() (*devgen.Kernel, error)
}

// The kernels without properties.
type (
	addRows    struct{}
	gatherRows struct{}
)

func (addRows) Kernel() (*devgen.Kernel, error)    { return kernels.AddRows() }
func (gatherRows) Kernel() (*devgen.Kernel, error) { return kernels.GatherRows() }

// quantization describes the kernel that quantizes rows for a path.
func quantization(path microkernel.Compute) description { return kernels.Norm{Path: path} }

// bindings and pushes are the arguments of a launch by the names that the kernel gives them. A
// kernel need not have all of them.
type (
	bindings map[string]device.Slice
	pushes   map[string]any // int or float32
)

// word returns the bits of a push word.
func word(x any) uint32 {
	if f, ok := x.(float32); ok {
		return math.Float32bits(f)
	}
	return uint32(x.(int))
}
