package x86

import (
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// wide says that vectors have 512 bits.
func (s spec) wide() bool { return s.ISA == kernel.AVX512 }

// registers is the number of vector registers the tile takes; the emitters allocate exactly these.
func (s spec) registers() int {
	v := s.NR / s.ISA.Lanes() // vectors across the tile
	tile := s.MR * v
	switch {
	case s.Dot == kernel.AMX:
		return s.amxRegisters(tile)
	case s.Compute == kernel.ComputeInt8:
		return s.int8Registers(tile, v)
	case s.Compute == kernel.ComputeBF16:
		return tile + s.pairRegisters(v)
	case s.B.Quantized():
		return tile + s.dequantFixed() + s.unpackPerVector() // one vector at a time
	case s.Form == kernel.Embed:
		return tile + s.wideRegisters(v)
	case s.bFromMemory():
		return tile + 1 // one element of A; W is a memory operand
	}
	return tile + s.wideRegisters(v) + 1
}

// bFromMemory says that the FMA reads W from memory, so that it needs no registers: worth it where W is used once or where
// registers are short.
func (s spec) bFromMemory() bool {
	return s.B == qtype.F32 && s.Compute == kernel.ComputeF32 && s.Form == kernel.Load && (s.MR == 1 || s.ISA == kernel.AVX2 && s.NR > qtype.PanelWidth)
}

// wideRegisters is what widening v vectors of a plain float type takes.
func (s spec) wideRegisters(v int) int {
	if s.B == qtype.BF16 {
		return v + 1 // and the mask of the high half
	}
	return v
}

// dequantFixed is the constants of unpacking and the broadcast element of A.
func (s spec) dequantFixed() int {
	n := s.unpackFixed()
	if s.Form == kernel.Load {
		n++
	}
	return n
}

// interleave is the number of vectors that are unpacked side by side, so that independent chains overlap.
func (s spec) interleave() int {
	v := s.NR / s.ISA.Lanes()
	return max(1, min(v, 4, (s.ISA.Registers()-s.MR*v-s.dequantFixed())/s.unpackPerVector()))
}
