// Package gemm emits the GEMM kernels of arm64: register tiles of MR rows by NR columns over packed
// panels, for Advanced SIMD with dot products, matrix products and bfloat16, and for the ZA array
// of SME, and the functions that dequantize panels.
//
// Files named tile_* emit the body of a tile for one chain (package kernel, Compute); emitter.go
// has the loops around it, subblocks.go and scales.go the dequantization, sme_* the outer products.
//
// The package must not import arm64/vector.
package gemm

import (
	"fmt"

	"sandwich/microkernel/internal/arm64/asm"
	"sandwich/microkernel/internal/code"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// Generator implements kernel.GEMM for NEON.
type Generator struct{}

// Legal returns why a tile lacks instructions or registers, or nil.
func (Generator) Legal(k kernel.Spec) error {
	s := spec{k}
	switch {
	case s.Compute == kernel.ComputeInt8Superblock:
		return fmt.Errorf("%s has no kernels of the path %s", s.ISA, s.Compute)
	case s.Spread:
		return fmt.Errorf("%s has no spread prefetch", s.ISA)
	case s.Compute == kernel.ComputeBF16 && (s.Form != kernel.Lane || s.KU%bf16Lanes != 0):
		return fmt.Errorf("bf16 kernels multiply by lanes on %s, and their KU is a multiple of %d", s.ISA, bf16Lanes)
	case s.Form == kernel.Outer:
		if err := s.validateSME(); err != nil {
			return err
		}
	case s.Dot == kernel.MOPA:
		return fmt.Errorf("dot product %s needs the form of outer products", s.Dot)
	case s.B.Quantized() && s.Form != kernel.Lane:
		return fmt.Errorf("kernels for quantized weights multiply by lanes on %s", s.ISA)
	case s.Form == kernel.Lane && s.KU%4 != 0:
		return fmt.Errorf("KU of a kernel that multiplies by lanes is a multiple of 4")
	}
	if e, _ := s.generator()(nil, s); e.used > Registers {
		return fmt.Errorf("the tile needs %d vector registers and %s has %d", e.used, s.ISA, Registers)
	}
	return nil
}

// Dominated keeps the highest outer products that the vectors have: lower ones are their tails.
func (Generator) Dominated(s kernel.Spec) bool { return s.MR != spec{s}.smeLanes() }

// CodeSpec returns s: each tile has code of its own.
func (Generator) CodeSpec(s kernel.Spec) kernel.Spec { return s }

// NeedsOf returns streaming mode with vectors of the length of the tile, for outer products.
func (Generator) NeedsOf(s kernel.Spec) (f kernel.Features) {
	if s.Form != kernel.Outer {
		return 0
	}
	if f = kernel.HasSME; (spec{s}).smeLanes() == 16 {
		f |= kernel.HasSME512
	}
	return f
}

// SelfTest is not needed: incorrect outer products are detected before a feature is reported.
func (Generator) SelfTest(kernel.Spec) (instead string, needed bool) { return "", false }

// Run computes one call of a kernel.
func (Generator) Run(k *kernel.Tiles, g kernel.GemmArgs) {
	if (spec{k.Spec}).planes() {
		runPlanes(k, g)
		return
	}
	k.RunPlain(&g)
}

// Assemble generates one tile of the spec's size.
func (Generator) Assemble(k kernel.Spec) ([]byte, error) {
	if (spec{k}).planes() {
		if _, err := planeMakers.Get(k.B); err != nil {
			return nil, err
		}
	}
	return tileOf(k).Finish()
}

// Counts returns the instructions of an iteration of that tile. Those of SME are not counted.
func (Generator) Counts(k kernel.Spec) (code.Counts, error) {
	a := tileOf(k)
	return a.Counts(), a.Err()
}

// Widen generates the function that dequantizes panels of a weight type.
func (Generator) Widen(b qtype.Type) ([]byte, error) {
	a := asm.New(asm.Base)
	emitWiden(a, b)
	return a.Finish()
}

// tileOf returns the tile before its addresses are resolved.
func tileOf(k kernel.Spec) *asm.Asm {
	s, level := spec{k}, asm.Base
	switch {
	case s.Form == kernel.Outer:
		level = asm.SME
	case s.Dot == kernel.MMLA:
		level = asm.DotProd | asm.I8MM
	case s.Dot == kernel.SDot:
		level = asm.DotProd
	case s.Compute == kernel.ComputeBF16:
		level = asm.BF16
	}
	a := asm.New(level)
	_, emit := s.generator()(a, s)
	emit()
	return a
}

// generator returns the function that allocates the registers of a tile and returns the function
// that emits it. Without an assembler it only counts registers, for Legal.
func (s spec) generator() func(a *asm.Asm, s spec) (_ *tile, emit func()) {
	switch {
	case s.planes():
		return newSMEPlanes
	case s.Form == kernel.Outer && s.Compute == kernel.ComputeInt8:
		return newSMEInt8
	case s.Form == kernel.Outer:
		return newSME
	case s.Compute.Quantizes():
		return newInt8
	case s.Compute == kernel.ComputeBF16:
		return newBF16
	case s.B.Quantized():
		return newQuantized
	}
	return newFloat
}
