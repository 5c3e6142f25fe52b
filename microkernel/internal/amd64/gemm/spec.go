package gemm

import (
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// spec is a kernel.Spec with the predicates of this backend.
type spec struct{ kernel.Spec }

// wide reports whether vectors have 512 bits.
func (s spec) wide() bool { return s.ISA == kernel.AVX512 }

// superblock reports whether the tile computes the chain "group".
func (s spec) superblock() bool { return s.Compute == kernel.ComputeInt8Superblock }

// integerScales reports whether the tile computes the chain "integer".
func (s spec) integerScales() bool { return s.Compute == kernel.ComputeInt8K }

// actBlock returns the bytes of 32 activations, and the offset of the first one.
func (s spec) actBlock() (bytes, first int) {
	if s.integerScales() {
		return kernel.ActQ8Block, 0
	}
	return kernel.ActQ8Bytes, kernel.ActQ
}

// dequantOnce reports whether the tile reads weights that were dequantized once per call.
func (s spec) dequantOnce() bool { return s.Form == kernel.DequantOnce }

// signedDot reports whether weights enter the dot product with their sign: in the multiply-add of
// eight-bit weights, which would overflow 16 bits, and for codebooks on AMX, which multiplies
// signed and unsigned bytes.
func (s spec) signedDot() bool {
	d := s.B.Desc()
	return s.Dot == kernel.MAdd && d.WideBytes() || s.Dot == kernel.AMX && d.Codebook != nil
}

// bFromMemory reports whether the FMA reads W from memory and needs no registers for it: if W is
// used once, or registers are scarce.
func (s spec) bFromMemory() bool {
	return s.B == qtype.F32 && s.Compute == kernel.ComputeF32 && s.Form == kernel.Load &&
		(s.MR == 1 || s.ISA == kernel.AVX2 && s.NR > qtype.PanelWidth)
}

// pairFromMemory reports whether the bfloat16 dot product reads W from memory: if W is used once.
func (s spec) pairFromMemory() bool { return s.Form == kernel.Load && s.MR == 1 }
