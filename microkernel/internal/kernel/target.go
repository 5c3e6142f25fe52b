package kernel

import (
	"strings"

	"sandwich/microkernel/internal/code"
	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/vecgen"
	"sandwich/microkernel/qtype"
)

// Target is an instruction set of a backend. A backend is a package that registers its targets when
// the program starts; all that is known about its instructions is behind this interface, and
// nothing outside it compares instruction sets, dot products or forms.
//
// Who calls what, in order: the search and the rules of thumb list specs (Space asks Worth and
// Legal, Needs and Forms and Dots narrow the list first); a plan that is read validates its specs
// (Legal) and asks what they need (SpecNeeds); building a kernel assembles every tile up to its
// size (Assemble) and, where Doubt says so, runs it once against plain Go; a call of the kernel is
// Run. Widen, Vector and Fused are the other code of a forward pass, Peak and Reader that of a
// probe. Everything but Run works on any host.
type Target interface {
	Name() string
	Needs() Features // of the instruction set as a whole
	Lanes() int      // float32 of one vector register
	Registers() int  // vector registers that generated code may use; 0 without a code generator
	IntegerPorts() int
	Forms() []Form // the ordinary one first
	Dots() []Dot

	Legal(s Spec) error        // what is wrong with a spec that keeps the rules for all
	Worth(s Spec) bool         // leaves out legal specs that cannot win
	Code(s Spec) Spec          // the spec whose machine code serves one
	SpecNeeds(s Spec) Features // beyond Needs and those of the dot product
	Assemble(s Spec) ([]byte, error)
	Counts(s Spec) (code.Counts, error) // of an iteration of the tile that Assemble generates
	// Doubt is what to use in place of a spec whose instructions a CPU may get wrong; "" where none
	// does.
	Doubt(s Spec) (advice string)
	Run(t *Tiles, g GemmArgs) // one call of at least one row and column

	Widen(b qtype.Type) ([]byte, error) // of WidenArgs
	Vector(k vecgen.Kernel) ([]byte, error)
	Fused(f vecgen.Fused) ([]byte, error)
	FusedRows(d vecgen.Dot) int           // the most rows that Fused takes; 0 where there is no such dot product
	Pairs(f vecgen.Fused) ([]byte, error) // brings a block into the form that Fused.Paired reads

	Peaks() map[string]Features // compute roofs by type, and what they need beyond Needs
	Peak(typ string, f Features) (code []byte, ops int, err error)
	Reader(ahead bool) ([]byte, error)
	// Port is a loop of n independent instructions of the classes of a mix in turn, the best for
	// each that the features have. Arguments: the number of iterations and 64 bytes to load and
	// store.
	Port(mix []code.Class, f Features) (code []byte, n int, err error)
}

// targets are the registered ones, by ISA.
var targets []Target

// Register gives an instruction set its target. It is for init functions and tests: no other
// function of this package may run at the same time.
func Register(i ISA, t Target) {
	for int(i) >= len(targets) {
		targets = append(targets, nil)
	}
	targets[i] = t
}

// Target is that of an instruction set, or nil.
func (i ISA) Target() Target {
	if int(i) < len(targets) {
		return targets[i]
	}
	return nil
}

// all lists the registered instruction sets, narrow to wide within an architecture.
func all() (out []ISA) {
	for i, t := range targets {
		if t != nil {
			out = append(out, ISA(i))
		}
	}
	return out
}

// Lanes is the number of float32 lanes of one vector register.
func (i ISA) Lanes() int {
	if t := i.Target(); t != nil {
		return t.Lanes()
	}
	return 1
}

// Wider is the one of two instruction sets that has the longer vectors, i where they are equal.
func (i ISA) Wider(than ISA) ISA {
	if than.Lanes() > i.Lanes() {
		return than
	}
	return i
}

// Covers says that the vectors of an instruction set are at least as long as those of another.
func (i ISA) Covers(o ISA) bool { return i.Wider(o).Lanes() == i.Lanes() }

// Registers is the number of vector registers that generated code may use; 0 without a code
// generator.
func (i ISA) Registers() int {
	if t := i.Target(); t != nil {
		return t.Registers()
	}
	return 0
}

// Generates says that there is a code generator; without one, kernels are plain Go.
func (i ISA) Generates() bool { return i.Registers() > 0 }

// IntegerPorts is the number of ports that multiply or add vectors of integers, as far as rules of
// thumb tell targets apart.
func (i ISA) IntegerPorts() int { return i.Target().IntegerPorts() }

// withForm names the instruction sets that have a form.
func withForm(f Form) string {
	var names []string
	for _, i := range all() {
		for _, x := range i.Target().Forms() {
			if x == f {
				names = append(names, i.String())
			}
		}
	}
	return strings.Join(names, " and ")
}

// Tiles is a kernel whose code is loaded.
type Tiles struct {
	Spec  Spec
	Funcs []jit.Func // [rows-1][panels-1]: a function for every smaller tile too, for the tails

	// What every call asks of the spec.
	iteration int // of k
	bytes     int // of a panel in an iteration
	ahead     int // iterations
	plain     bool
}

// NewTiles is a kernel whose code is still to be loaded.
func NewTiles(s Spec) Tiles {
	return Tiles{Spec: s, iteration: s.Iteration(), bytes: s.B.PanelOffset(s.Iteration()), ahead: s.IterationsAhead(),
		plain: !s.MatrixUnit() && s.Form != Once}
}

// Plain says that a call needs nothing but its arguments: RunPlain does what the target does.
func (k *Tiles) Plain() bool { return k.plain }

// WidenArgs is what a generated widener gets.
type WidenArgs struct {
	Src, Dst   uintptr
	Main, Rest uintptr // iterations of the loop, single k after it
}

// WidenStep is the k of one iteration of a widener.
func WidenStep(b qtype.Type) int { return max(b.Block(), 8) }

// ReaderBlock is the unit of a reader in bytes, ReadAhead its prefetch distance: far enough for the
// latency of memory at the rate one core reads.
const (
	ReaderBlock = 1024
	ReadAhead   = 4096
)
