package microkernel

import "fmt"

// Limits on what a spec may ask for, beyond the number of registers.
const (
	maxMR       = 24
	maxNR       = 128
	maxKU       = 32
	maxPrefetch = 8192
)

// Validate says what is wrong with the spec, or nil when a kernel can be generated for it. It does not ask whether this
// host can run it: that is Needs.
func (s Spec) Validate() error {
	if err := s.validate(); err != nil {
		return fmt.Errorf("kernel spec %s: %w", s, err)
	}
	return nil
}

func (s Spec) validate() error {
	switch {
	case int(s.ISA) >= len(isaNames):
		return fmt.Errorf("unknown instruction set")
	case s.Compute >= computes:
		return fmt.Errorf("unknown compute path")
	case !s.B.Known():
		return fmt.Errorf("unknown weight type")
	case int(s.Form) >= len(formNames) || !s.Dot.known():
		return fmt.Errorf("unknown form or dot product")
	case s.MR < 1 || s.MR > maxMR:
		return fmt.Errorf("MR %d is not within 1 and %d", s.MR, maxMR)
	case s.NR < PanelWidth || s.NR > maxNR || s.NR%PanelWidth != 0:
		return fmt.Errorf("NR %d is not a multiple of %d within %d", s.NR, PanelWidth, maxNR)
	case s.KU < 1 || s.KU > maxKU || s.KU&(s.KU-1) != 0:
		return fmt.Errorf("KU %d is not a power of two within %d", s.KU, maxKU)
	case s.Prefetch < 0 || s.Prefetch > maxPrefetch || s.Prefetch%64 != 0:
		return fmt.Errorf("prefetch distance %d is not a multiple of 64 within %d", s.Prefetch, maxPrefetch)
	case s.Spread && s.Prefetch > 0:
		return fmt.Errorf("a kernel that spreads its prefetch has no prefetch distance")
	case s.Spread && (s.ISA == NEON || s.ISA.vectors() == 0):
		return fmt.Errorf("%s has no spread prefetch", s.ISA)
	case s.Form == Embed && s.ISA != AVX512:
		return fmt.Errorf("only avx512 has embedded broadcasts")
	case (s.Form == Lane || s.Form == Outer) && s.ISA != NEON:
		return fmt.Errorf("only neon multiplies by a lane or makes outer products")
	case s.Compute == ComputeInt8 && !s.B.Quantized():
		return fmt.Errorf("the int8 path is for quantized weights")
	}
	switch s.Compute {
	case ComputeF32:
		return s.validateF32()
	case ComputeBF16:
		return s.validateBF16()
	}
	return s.validateInt8()
}

func (s Spec) validateF32() error {
	switch {
	case s.Dot != NoDot:
		return fmt.Errorf("an f32 kernel has no dot product")
	case s.B.Quantized() && s.ISA != Go && s.KU != 32:
		return fmt.Errorf("KU of a kernel for quantized weights is their block of 32")
	case s.B == BF16 && s.ISA != Go && s.KU < 2:
		return fmt.Errorf("KU must be even for bf16, which is packed in pairs")
	}
	return s.checkRegisters()
}

func (s Spec) validateInt8() error {
	switch {
	case s.ISA == Go && s.Dot != NoDot:
		return fmt.Errorf("plain Go has no dot product instruction")
	case s.ISA == Go:
	case s.Dot.info().compute != ComputeInt8:
		return fmt.Errorf("an int8 kernel needs a dot product of integers")
	case s.Dot == AMX && s.validateAMX() != nil:
		return s.validateAMX()
	case !s.Dot.on(s.ISA):
		return fmt.Errorf("dot product %s does not exist on %s", s.Dot.info().name, s.ISA)
	case s.Dot == MOPA && s.Form != Outer:
		return fmt.Errorf("dot product %s makes outer products", dots[MOPA].name)
	case s.Dot == MAdd && s.Form == Embed:
		return fmt.Errorf("the multiply-add has no embedded broadcast")
	case s.Dot == MAdd && s.signedDot() && s.ISA == AVX512 && s.NR/PanelWidth > flipMasks:
		return fmt.Errorf("the signs of %d panels do not fit the %d opmasks", s.NR/PanelWidth, flipMasks)
	case s.KU != 32:
		return fmt.Errorf("KU of an int8 kernel is its block of 32")
	}
	return s.checkRegisters()
}

func (s Spec) validateBF16() error {
	switch {
	case s.B != BF16:
		return fmt.Errorf("the bf16 path is for bf16 weights")
	case s.Dot.info().compute != ComputeBF16:
		return fmt.Errorf("a bf16 kernel needs a dot product of bfloat16")
	case !s.Dot.on(s.ISA):
		return fmt.Errorf("dot product %s does not exist on %s", s.Dot.info().name, s.ISA)
	case s.ISA == NEON && (s.Form != Lane || s.KU%bf16Lanes != 0):
		return fmt.Errorf("bf16 kernels multiply by lanes on %s, and their KU is a multiple of %d", s.ISA, bf16Lanes)
	case s.KU < 2:
		return fmt.Errorf("KU must be even for bf16, which is packed in pairs")
	}
	return s.checkRegisters()
}

func (s Spec) checkRegisters() error {
	have := s.ISA.vectors()
	if s.ISA == Go {
		return nil
	}
	if s.ISA == NEON {
		if err := s.validateNEON(); err != nil {
			return err
		}
	}
	if need := s.registers(); need > have {
		return fmt.Errorf("the tile needs %d vector registers and %s has %d", need, s.ISA, have)
	}
	if need := s.pointers(); need > len(pointerPool) {
		return fmt.Errorf("the tile needs %d pointers and there are %d", need, len(pointerPool))
	}
	return nil
}

// registers is the number of vector registers the tile takes; the emitters allocate exactly these.
func (s Spec) registers() int {
	v := s.NR / s.ISA.Lanes() // vectors across the tile
	tile := s.MR * v
	switch {
	case s.ISA == NEON:
		return s.neonRegisters(tile)
	case s.Dot == AMX:
		return s.amxRegisters(tile)
	case s.Compute == ComputeInt8:
		return s.int8Registers(tile, v)
	case s.Compute == ComputeBF16:
		return tile + s.pairRegisters(v)
	case s.B.Quantized():
		return tile + s.dequantFixed() + s.unpackPerVector() // one vector at a time
	case s.Form == Embed:
		return tile + s.wideRegisters(v)
	case s.bFromMemory():
		return tile + 1 // one element of A; W is a memory operand
	}
	return tile + s.wideRegisters(v) + 1
}

// bFromMemory says that the FMA reads W from memory, so that it needs no registers: worth it where W is used once or where
// registers are short.
func (s Spec) bFromMemory() bool {
	return s.B == F32 && s.Compute == ComputeF32 && s.Form == Load && (s.MR == 1 || s.ISA == AVX2 && s.NR > PanelWidth)
}

// wideRegisters is what widening v vectors of a plain float type takes.
func (s Spec) wideRegisters(v int) int {
	if s.B == BF16 {
		return v + 1 // and the mask of the high half
	}
	return v
}

// dequantFixed is the constants of unpacking and the broadcast element of A.
func (s Spec) dequantFixed() int {
	n := s.unpackFixed()
	if s.Form == Load {
		n++
	}
	return n
}

// interleave is the number of vectors that are unpacked side by side, so that independent chains overlap.
func (s Spec) interleave() int {
	v := s.NR / s.ISA.Lanes()
	return max(1, min(v, 4, (s.ISA.vectors()-s.MR*v-s.dequantFixed())/s.unpackPerVector()))
}
