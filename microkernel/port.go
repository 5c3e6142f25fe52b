package microkernel

import (
	"fmt"

	"sandwich/microkernel/internal/code"
	"sandwich/microkernel/internal/jit"
)

// InstructionClass is the kind of execution port an instruction occupies, and InstructionCounts
// the number of instructions of each class.
type (
	InstructionClass  = code.Class
	InstructionCounts = code.Counts
)

// The classes that have a measured rate of their own; the others are vector arithmetic.
const (
	OtherInstruction    = code.Other
	LoadInstruction     = code.Load
	WordInstruction     = code.LoadWord
	StoreInstruction    = code.Store
	TileInstruction     = code.Tile
	MultiplyInstruction = code.Multiply
	InstructionClasses  = code.NumClasses
)

// ParseInstructionClass is the inverse of a class's String.
func ParseInstructionClass(name string) (InstructionClass, bool) {
	for c := range InstructionClasses {
		if c.String() == name {
			return c, true
		}
	}
	return OtherInstruction, false
}

// Instructions counts the instructions of an iteration of the main loop of a kernel's full tile
// (Iteration k, MR rows, NR columns) in its generated code. It leaves out the instructions that
// convert weights to bytes for a matrix unit, which all row tiles share. It returns an error for a
// spec that is invalid or has no generated code.
func Instructions(s Spec) (InstructionCounts, error) {
	if err := s.Validate(); err != nil {
		return InstructionCounts{}, err
	}
	return s.ISA.Target().GEMM.Counts(s)
}

// NewPort returns a Peak whose operations are independent instructions that cycle through the
// classes of a mix: the rate at which a core executes them. It returns an error if the instruction
// set has no such instructions with these features, or if the system forbids executable memory. An
// operation of TileInstruction, which must be the only class, is a row of a product of tiles.
func NewPort(isa ISA, f Features, mix ...InstructionClass) (*Peak, error) {
	if !f.Supports(isa) || !isa.Generates() || jit.Race {
		return nil, fmt.Errorf("no %s instructions with the features %q", isa, f)
	}
	if len(mix) == 1 && mix[0] == TileInstruction {
		if peakKernels[Int8Kernel].spec(isa, f) == nil {
			return nil, fmt.Errorf("no matrix unit with the features %q", f)
		}
		p, err := NewPeak(PeakSpec{isa, ComputeInt8.String()}, f)
		if err == nil {
			p.Ops /= 2 * PanelWidth * 64 // multiply-adds of a row of a tile
		}
		return p, err
	}
	machine, n, err := isa.Target().Probes.Port(mix, f)
	if err != nil {
		return nil, err
	}
	loaded, err := jit.LoadOne(machine)
	if err != nil {
		return nil, err
	}
	return &Peak{Spec: PeakSpec{isa, fmt.Sprint(mix)}, Ops: n, code: loaded, port: true}, nil
}
