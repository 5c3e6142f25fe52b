package gemm

import (
	"fmt"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// wide says that vectors have 512 bits.
func (s spec) wide() bool { return s.ISA == kernel.AVX512 }

// generator is what makes the tile. It hands out the registers of a tile, and returns what then
// generates it; without an assembler that is a dry run, by which Legal counts.
func (s spec) generator() func(a *asm.Asm, s spec) (_ *emitter, emit func()) {
	switch {
	case s.Dot == kernel.AMX:
		return newAMX
	case s.once():
		return newOnce
	case s.Compute.Quantizes():
		return newInt8
	case s.Compute == kernel.ComputeBF16:
		return newBF16
	case s.B.Quantized():
		return newQuant
	}
	return newFloat
}

// checkRegisters says what registers a tile lacks. A tile without prefetch leaves room for one at a
// distance, so that whether a plan may have it is no question of its size.
func (s spec) checkRegisters() error {
	if !s.Prefetches() && s.Dot != kernel.AMX && !s.once() {
		s.Spec = s.WithPrefetch(64)
	}
	e, _ := s.generator()(nil, s)
	if have := s.ISA.Registers(); e.used > have {
		return fmt.Errorf("the tile needs %d vector registers and %s has %d", e.used, s.ISA, have)
	}
	if e.pointers > len(pointerPool) {
		return fmt.Errorf("the tile needs %d pointers and there are %d", e.pointers, len(pointerPool))
	}
	return nil
}

// bFromMemory says that the FMA reads W from memory, so that it needs no registers: worth it where
// W is used once or where registers are short.
func (s spec) bFromMemory() bool {
	return s.B == qtype.F32 && s.Compute == kernel.ComputeF32 && s.Form == kernel.Load &&
		(s.MR == 1 || s.ISA == kernel.AVX2 && s.NR > qtype.PanelWidth)
}
