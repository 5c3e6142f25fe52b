// Package ptx translates kernels of package devgen to PTX text for CUDA devices.
package ptx

import (
	"fmt"

	"sandwich/microkernel/devgen"
)

// Target is a compute capability: 75 for sm_75. MMA and asynchronous copies need 80.
type Target int

// Emit returns the text of a module with the kernel as an entry of its name. Its parameters are the
// arguments of the dispatch: the addresses of the bindings, then the push words.
func Emit(k *devgen.Kernel, t Target) (string, error) {
	return "", fmt.Errorf("kernel %s: no PTX", k.Name)
}
