package microkernel

import (
	"fmt"

	"sandwich/microkernel/internal/code"
	"sandwich/microkernel/internal/jit"
)

// InstructionClass is what instructions keep busy, as far as port roofs tell them apart, and
// InstructionCounts how many of each class there are.
type (
	InstructionClass  = code.Class
	InstructionCounts = code.Counts
)

// The classes that port roofs treat by themselves; the others are vector arithmetic.
const (
	OtherInstruction    = code.Other
	LoadInstruction     = code.Load
	WordInstruction     = code.LoadWord
	StoreInstruction    = code.Store
	TileInstruction     = code.Tile
	MultiplyInstruction = code.Multiply
	InstructionClasses  = code.NumClasses
)

// ParseInstructionClass returns the inverse of a class's String.
func ParseInstructionClass(name string) (InstructionClass, bool) {
	for c := range InstructionClasses {
		if c.String() == name {
			return c, true
		}
	}
	return OtherInstruction, false
}

// Instructions counts those of an iteration of the main loop of a kernel's full tile, Iteration k
// for MR rows and NR columns, from the code that is emitted for it. Those that turn weights into
// bytes for a matrix unit are left out: all row tiles share them. It fails for a spec that is not
// valid or has no generated code.
func Instructions(s Spec) (InstructionCounts, error) {
	if err := s.Validate(); err != nil {
		return InstructionCounts{}, err
	}
	return s.ISA.Target().GEMM.Counts(s)
}

// NewPort returns a Peak whose operations are independent instructions of one class, or of those
// of a mix in turn, so many an iteration: the rate at which a core makes them. It fails where the
// instruction set has none with these features, and where the system forbids executable memory. A
// row of a product of tiles is an operation of TileInstruction, which no mix has.
func NewPort(isa ISA, f Features, mix ...InstructionClass) (*Peak, error) {
	if !f.Supports(isa) || !isa.Generates() || jit.Race {
		return nil, fmt.Errorf("no %s instructions with the features %q", isa, f)
	}
	if len(mix) == 1 && mix[0] == TileInstruction {
		if unitKernel(isa, f) == nil {
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
	fs, err := jit.Load(machine)
	if err != nil {
		return nil, err
	}
	return &Peak{Spec: PeakSpec{isa, fmt.Sprint(mix)}, Ops: n, code: fs[0], port: true}, nil
}
