// Package arm is the backend of arm64: Advanced SIMD, with dot products, matrix products and SME on
// top.
package gemm

import (
	"errors"
	"fmt"

	"sandwich/microkernel/internal/arm64/asm"
	"sandwich/microkernel/internal/code"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/internal/vecgen"
	"sandwich/microkernel/qtype"
)

// target is NEON, the one instruction set.
type target struct{}

func init() { kernel.Register(kernel.NEON, target{}) }

// The vector registers of Advanced SIMD.
const (
	lanes     = 4
	registers = 32
)

func (target) Name() string           { return "neon" }
func (target) Needs() kernel.Features { return kernel.HasNEON }
func (target) Lanes() int             { return lanes }
func (target) Registers() int         { return registers }
func (target) IntegerPorts() int      { return 2 }
func (target) Forms() []kernel.Form   { return []kernel.Form{kernel.Lane, kernel.Load, kernel.Outer} }

func (target) Dots() []kernel.Dot {
	return []kernel.Dot{kernel.MMLA, kernel.SDot, kernel.MulL, kernel.MOPA, kernel.BFMMLA, kernel.BFDot}
}

// spec is a spec with what this backend knows about it.
type spec struct{ kernel.Spec }

// Legal says what a tile has no instructions or no registers for.
func (target) Legal(k kernel.Spec) error {
	s := spec{k}
	switch {
	case s.Compute == kernel.ComputeInt8Long:
		return fmt.Errorf("%s has no kernels of the path %s", s.ISA, s.Compute)
	case s.Spread:
		return fmt.Errorf("%s has no spread prefetch", s.ISA)
	case s.Compute == kernel.ComputeBF16 && (s.Form != kernel.Lane || s.KU%bf16Lanes != 0):
		return fmt.Errorf("bf16 kernels multiply by lanes on %s, and their KU is a multiple of %d", s.ISA, bf16Lanes)
	case s.Form == kernel.Outer && s.validateSME() != nil:
		return s.validateSME()
	case s.Form == kernel.Outer:
	case s.Dot == kernel.MOPA:
		return fmt.Errorf("dot product %s makes outer products", s.Dot)
	case s.B.Quantized() && s.Form != kernel.Lane:
		return fmt.Errorf("kernels for quantized weights multiply by lanes on %s", s.ISA)
	case s.Form == kernel.Lane && s.KU%4 != 0:
		return fmt.Errorf("KU of a kernel that multiplies by lanes is a multiple of 4")
	}
	if e, _ := s.generator()(nil, s); e.used > registers {
		return fmt.Errorf("the tile needs %d vector registers and %s has %d", e.used, s.ISA, registers)
	}
	return nil
}

// Code: each tile has code of its own.
func (target) Code(s kernel.Spec) kernel.Spec { return s }

// Worth takes the highest outer products that the vectors have: lower ones are their tails.
func (target) Worth(s kernel.Spec) bool { return s.MR == spec{s}.smeLanes() }

// SpecNeeds is streaming mode, and vectors of the length that the tile has.
func (target) SpecNeeds(s kernel.Spec) (f kernel.Features) {
	if s.Form != kernel.Outer {
		return 0
	}
	if f = kernel.HasSME; (spec{s}).smeLanes() == 16 {
		f |= kernel.HasSME512
	}
	return f
}

// Doubt: what emulators get wrong is found before a feature is reported.
func (target) Doubt(kernel.Spec) string { return "" }

// Run is one call of a kernel.
func (target) Run(k *kernel.Tiles, g kernel.GemmArgs) { k.RunPlain(&g) }

// Assemble generates one tile of the spec's size.
func (target) Assemble(k kernel.Spec) ([]byte, error) { return tileOf(k).Finish() }

// Counts is the instructions of an iteration of that tile; of SME nobody counts any.
func (target) Counts(k kernel.Spec) (code.Counts, error) {
	a := tileOf(k)
	return a.Counts(), a.Err()
}

// tileOf is the tile before its addresses are known.
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

// assemble runs emit on an empty function and returns its machine code.
func assemble(level asm.Level, emit func(a *asm.Asm)) ([]byte, error) {
	a := asm.New(level)
	emit(a)
	return a.Finish()
}

// Widen generates the widener of a weight type.
func (target) Widen(b qtype.Type) ([]byte, error) {
	return assemble(asm.Base, func(a *asm.Asm) { emitWiden(a, b) })
}

// Vector generates a kernel of a row.
func (target) Vector(k vecgen.Kernel) ([]byte, error) { return vecgen.GenerateNEON(k) }

// Fused generates attention over a block.
func (target) Fused(f vecgen.Fused) ([]byte, error) { return vecgen.GenerateFusedNEON(f) }

// FusedRows is the most rows that Fused takes.
func (target) FusedRows(d vecgen.Dot) int {
	if d == vecgen.FMA {
		return vecgen.NEONMaxRows
	}
	return 0
}

// Pairs generates nothing: no attention reads pairs.
func (target) Pairs(vecgen.Fused) ([]byte, error) { return nil, errors.ErrUnsupported }
