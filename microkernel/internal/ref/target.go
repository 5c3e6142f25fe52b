// Package plain is the backend without a code generator: kernels are Go, with correctly rounded
// arithmetic. They are the oracles of all generated ones, and what runs where there is no
// executable memory.
package ref

import (
	"fmt"

	"sandwich/microkernel/internal/code"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/internal/vecgen"
	"sandwich/microkernel/qtype"
)

// Target is plain Go under a name of its own, which tests use to add one.
type Target string

func init() { kernel.Register(kernel.Go, Target("go")) }

func (t Target) Name() string           { return string(t) }
func (t Target) Needs() kernel.Features { return 0 }
func (t Target) Lanes() int             { return 1 }
func (t Target) Registers() int         { return 0 }
func (t Target) IntegerPorts() int      { return 2 }
func (t Target) Forms() []kernel.Form   { return []kernel.Form{kernel.Load} }
func (t Target) Dots() []kernel.Dot     { return nil }

// Legal refuses the one thing that Go ignores and other targets without it refuse.
func (t Target) Legal(s kernel.Spec) error {
	if s.Spread {
		return fmt.Errorf("%s has no spread prefetch", t)
	}
	return nil
}

// Worth, Code, SpecNeeds and Doubt: there is one kernel, and it is right everywhere.
func (t Target) Worth(kernel.Spec) bool                { return true }
func (t Target) Code(s kernel.Spec) kernel.Spec        { return s }
func (t Target) SpecNeeds(kernel.Spec) kernel.Features { return 0 }
func (t Target) Doubt(kernel.Spec) string              { return "" }

// Run computes a call.
func (t Target) Run(k *kernel.Tiles, g kernel.GemmArgs) { RunRef(k.Spec, &g) }

func (t Target) none() error { return fmt.Errorf("no code generator for %s", t) }

// Assemble, and all that generates code: there is none.
func (t Target) Assemble(kernel.Spec) ([]byte, error)                    { return nil, t.none() }
func (t Target) Counts(kernel.Spec) (code.Counts, error)                 { return code.Counts{}, t.none() }
func (t Target) Port([]code.Class, kernel.Features) ([]byte, int, error) { return nil, 0, t.none() }
func (t Target) Widen(qtype.Type) ([]byte, error)                        { return nil, t.none() }
func (t Target) Vector(vecgen.Kernel) ([]byte, error)                    { return nil, t.none() }
func (t Target) Fused(vecgen.Fused) ([]byte, error)                      { return nil, t.none() }
func (t Target) FusedRows(vecgen.Dot) int                                { return 0 }
func (t Target) Pairs(vecgen.Fused) ([]byte, error)                      { return nil, t.none() }
func (t Target) Reader(bool) ([]byte, error)                             { return nil, t.none() }
func (t Target) Peaks() map[string]kernel.Features                       { return map[string]kernel.Features{"f32": 0} }
func (t Target) Peak(string, kernel.Features) ([]byte, int, error)       { return nil, 0, t.none() }
