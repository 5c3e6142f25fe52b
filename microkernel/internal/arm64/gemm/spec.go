package gemm

import (
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// The vector registers of Advanced SIMD.
const (
	Lanes     = 4
	Registers = 32
)

// spec is a kernel.Spec with the predicates of this backend.
type spec struct{ kernel.Spec }

// activationRegisters returns the number of registers of activations: one per row, or one per two
// rows and one to combine them.
func (s spec) activationRegisters() int {
	if s.Dot == kernel.MMLA {
		return max(1, s.MR/2+1)
	}
	return s.MR
}

// smeLanes returns the elements of a streaming vector that the code uses, which is also the number
// of k that are transposed at a time. Tiles of the chain "integer" have sixteen.
func (s spec) smeLanes() int {
	if s.MR <= 8 && s.NR == qtype.PanelWidth && !s.integerScales() {
		return 8
	}
	return 16
}

// integerScales reports whether the tile computes the chain "integer".
func (s spec) integerScales() bool { return s.Compute == kernel.ComputeInt8K }

// actBlock returns the bytes of 32 activations, and the offset of the first one.
func (s spec) actBlock() (bytes, first int) {
	if s.integerScales() {
		return kernel.ActQ8Block, 0
	}
	return kernel.ActQ8Bytes, kernel.ActQ
}

// planes reports whether the tile multiplies planes of bytes on SME; see planes.go.
func (s spec) planes() bool { return s.integerScales() && s.Form == kernel.Outer }
