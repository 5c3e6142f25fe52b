// Package ref is the plain-Go backend: kernels in Go with correctly rounded arithmetic. It is the
// oracle of all generated kernels, and the kernel itself where no code can be generated.
//
// The package must not import an emitter (amd64, arm64).
package ref

import (
	"fmt"

	"sandwich/microkernel/internal/code"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// NewTarget returns a target that runs plain Go under a name.
func NewTarget(name string) *kernel.Target {
	return &kernel.Target{
		Name: name, Lanes: 1, IntegerPorts: 2, Forms: []kernel.Form{kernel.Load},
		Peaks: map[string]kernel.Features{"f32": 0}, GEMM: gemm{name},
	}
}

func init() { kernel.Register(kernel.Go, NewTarget("go")) }

// gemm implements kernel.GEMM under a name.
type gemm struct{ name string }

// Legal rejects a spread prefetch, which plain Go does not have.
func (g gemm) Legal(s kernel.Spec) error {
	if s.Spread {
		return fmt.Errorf("%s has no spread prefetch", g.name)
	}
	return nil
}

// Dominated returns false: there is one kernel.
func (g gemm) Dominated(kernel.Spec) bool { return false }

// CodeSpec returns s.
func (g gemm) CodeSpec(s kernel.Spec) kernel.Spec { return s }

// NeedsOf returns no features.
func (g gemm) NeedsOf(kernel.Spec) kernel.Features { return 0 }

// SelfTest is not needed.
func (g gemm) SelfTest(kernel.Spec) (instead string, needed bool) { return "", false }

// Run computes a call.
func (g gemm) Run(k *kernel.Tiles, args kernel.GemmArgs) { RunRef(k.Spec, &args) }

// Assemble returns an error, as do Counts and Widen: there is no code generator.
func (g gemm) Assemble(kernel.Spec) ([]byte, error)    { return nil, g.noGenerator() }
func (g gemm) Counts(kernel.Spec) (code.Counts, error) { return code.Counts{}, g.noGenerator() }
func (g gemm) Widen(qtype.Type) ([]byte, error)        { return nil, g.noGenerator() }
func (g gemm) noGenerator() error                      { return fmt.Errorf("%s has no code generator", g.name) }
