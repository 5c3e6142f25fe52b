package kernel

import (
	"sandwich/microkernel/internal/code"
	"sandwich/microkernel/qtype"
)

// Target describes one instruction set and holds its code generators, by concern. A backend is a
// package that registers its targets during initialization; everything about its instructions is
// behind these interfaces, and no package outside microkernel compares instruction sets, dot
// products or forms.
//
// Everything but GEMM.Run works on any host. Targets are immutable and safe for concurrent use.
type Target struct {
	Name         string
	Needs        Features            // of the instruction set as a whole
	Lanes        int                 // float32 lanes of a vector register
	Registers    int                 // vector registers that generated code may use; 0: plain Go
	IntegerPorts int                 // execution ports for integer vector arithmetic, for heuristics
	Int8Dots     Features            // each of these provides fast int8 dot products
	Int8Bits     int                 // without them int8 keeps up with float32 for weights of fewer bits
	MatrixUnit   Features            // a matrix unit for bytes; 0: none
	Forms        []Form              // the ordinary form first
	Dots         []Dot               // dot products of GEMM kernels
	Peaks        map[string]Features // compute ceilings by type, and the features they need beyond Needs

	GEMM GEMM // never nil

	// The following are nil if Registers is 0.
	Vector    VectorGenerator
	Attention AttentionGenerator
	Probes    ProbeGenerator
}

// GEMM answers which GEMM kernels exist and generates and runs them. The search and the heuristics
// list specs (Space), a plan that is read validates its specs (SpecRules), building a kernel
// assembles every tile up to its size and runs a self-test if the rules ask for it.
type GEMM interface {
	SpecRules
	// Assemble generates the machine code of one tile of the spec's size.
	Assemble(s Spec) ([]byte, error)
	// Counts returns the instructions of an iteration of that tile.
	Counts(s Spec) (code.Counts, error)
	// Widen generates a function that dequantizes panels of a weight type (WidenArgs).
	Widen(b qtype.Type) ([]byte, error)
	// Run computes one call of at least one row and one column.
	Run(t *Tiles, g GemmArgs)
}

// SpecRules answers questions about specs that satisfy the rules common to all instruction sets.
type SpecRules interface {
	// Legal returns why the instruction set has no instructions or registers for a spec, or nil.
	Legal(s Spec) error
	// Dominated reports whether Space prunes a legal spec of a matrix unit because another spec is
	// at least as fast.
	Dominated(s Spec) bool
	// CodeSpec returns the spec whose machine code serves s.
	CodeSpec(s Spec) Spec
	// NeedsOf returns the features a spec needs beyond Target.Needs and those of its dot product.
	NeedsOf(s Spec) Features
	// SelfTest reports whether a kernel must be compared with plain Go before use, and the name of
	// the dot product to use if the comparison fails.
	SelfTest(s Spec) (instead string, needed bool)
}

// VectorGenerator generates row operations and packers.
type VectorGenerator interface {
	// Op generates a row operation (VectorArgs). It returns no code and no error for an operation
	// that the instruction set leaves to plain Go.
	Op(op VectorOp) ([]byte, error)
	// Transpose generates a packer of rows of plain elements, or returns no code.
	Transpose(t Transpose) ([]byte, error)
}

// AttentionGenerator generates fused attention.
type AttentionGenerator interface {
	// Rows returns the largest number of rows of a kernel, or 0 without such a dot product.
	Rows(d Dot) int
	// Kernel generates a kernel (AttentionArgs).
	Kernel(s AttentionSpec) ([]byte, error)
	// OpenBlock generates the function that converts a cached block to the layout that a kernel
	// with AttentionSpec.Opened reads. Of AttentionArgs, KV is the block, State the destination,
	// Scratch has AttentionSizes.Scratch bytes, Blocks is the number of positions that any row
	// sees, and After is the block to prefetch.
	OpenBlock(s AttentionSpec) ([]byte, error)
	// Sizes returns the memory that a kernel needs.
	Sizes(s AttentionSpec) AttentionSizes
}

// ProbeGenerator generates the loops by which a probe measures a core.
type ProbeGenerator interface {
	// Peak generates a loop of independent multiply-adds of a type of Target.Peaks, and returns its
	// operations per iteration.
	Peak(typ string, f Features) (machine []byte, ops int, err error)
	// Reader generates a loop that reads memory, with or without software prefetch. Arguments:
	// pointer, blocks of ReaderBlock bytes, passes, result.
	Reader(prefetch bool) ([]byte, error)
	// Port generates a loop of n independent instructions that cycles through the classes of a mix,
	// the best for each class that the features have. Arguments: iterations, and the address of 64
	// bytes to load and store.
	Port(mix []code.Class, f Features) (machine []byte, n int, err error)
}

// ReaderBlock is the unit of a reader in bytes. ReadAhead is its prefetch distance in bytes, which
// covers the latency of memory at the rate one core reads.
const (
	ReaderBlock = 1024
	ReadAhead   = 4096
)
