// Package gemm emits the GEMM kernels of amd64: register tiles of MR rows by NR columns over packed
// panels, for AVX2 and AVX-512 with VNNI, AMX and bfloat16 dot products, and the functions that
// dequantize panels.
//
// Files named tile_* emit the body of a tile for one chain (package kernel, Compute); emitter.go
// has the loops around it, prefetch.go software prefetch, unpack.go and scales.go the
// dequantization, amx_* tiles whose sums of sub-blocks come from the matrix unit, dequant_once.go
// the kernels that cache dequantized weights. Package amd64/matrix has the tiles whose sums stay in
// the matrix unit.
//
// The package must not import amd64/vector or amd64/attention.
package gemm

import (
	"fmt"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/amd64/matrix"
	"sandwich/microkernel/internal/code"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// Generator implements kernel.GEMM for one level of amd64.
type Generator struct {
	ISA   kernel.ISA
	Level asm.Level
}

// Legal returns why a tile lacks instructions or registers, or nil.
func (v Generator) Legal(k kernel.Spec) error {
	s := spec{k}
	switch {
	case s.Dot == kernel.TDPBF16:
		return matrix.ValidateBF16(k)
	case s.Dot == kernel.AMX && s.Compute == kernel.ComputeInt8K:
		return matrix.ValidatePlanes(k)
	case s.Dot == kernel.AMX:
		if err := s.validateAMX(); err != nil {
			return err
		}
	case s.dequantOnce():
		if err := s.validateDequantOnce(); err != nil {
			return err
		}
	case s.Form == kernel.Overlap:
		return fmt.Errorf("form overlap exists for the path %s and dot product %s only", kernel.ComputeInt8K,
			kernel.AMX)
	case s.Dot == kernel.MAdd && s.Form == kernel.Embed:
		return fmt.Errorf("the multiply-add has no embedded broadcast")
	case s.Dot == kernel.MAdd && s.signedDot() && s.wide() && s.NR/qtype.PanelWidth > flipMasks:
		return fmt.Errorf("the signs of %d panels do not fit the %d opmasks", s.NR/qtype.PanelWidth, flipMasks)
	}
	return s.checkRegisters()
}

// Dominated keeps the highest AMX tile, of which lower ones are tails, with four or eight panels,
// which share the packing of rows.
func (v Generator) Dominated(s kernel.Spec) bool {
	if s.Compute == kernel.ComputeInt8K || s.Compute == kernel.ComputeBF16Tile {
		return s.MR != matrix.PairRows || s.NR != matrix.PairPanels*qtype.PanelWidth
	}
	return s.MR != AMXRows || s.NR != amxPanels*qtype.PanelWidth && s.NR != amxPanels/2*qtype.PanelWidth
}

// CodeSpec returns one panel for AMX, whose code serves any number of panels, and for the paths
// whose sums stay in tiles the sizes that differ in code.
func (v Generator) CodeSpec(s kernel.Spec) kernel.Spec {
	switch {
	case s.Dot == kernel.TDPBF16:
		return matrix.BF16Code(s)
	case s.Dot == kernel.AMX && s.Compute == kernel.ComputeInt8K:
		return matrix.PlanesCode(s)
	case s.Dot == kernel.AMX:
		s.NR = qtype.PanelWidth
	}
	return s
}

// NeedsOf returns no features: those of the dot product suffice.
func (v Generator) NeedsOf(kernel.Spec) kernel.Features { return 0 }

// SelfTest requires a self-test of the kernels that use tile registers.
func (v Generator) SelfTest(s kernel.Spec) (instead string, needed bool) {
	if s.Dot == kernel.TDPBF16 {
		return kernel.DPBF16.String(), true
	}
	return kernel.VNNI.String(), s.Dot == kernel.AMX
}

// Run computes one call of a kernel.
func (v Generator) Run(k *kernel.Tiles, g kernel.GemmArgs) {
	switch {
	case k.Spec.Dot == kernel.TDPBF16:
		matrix.RunBF16(k, &g)
		return
	case k.Spec.Dot == kernel.AMX && k.Spec.Compute == kernel.ComputeInt8K:
		runPlanes(k, &g)
		return
	case k.Spec.Dot == kernel.AMX:
		runAMX(k, &g)
		return
	case k.Spec.Form == kernel.DequantOnce:
		runDequantOnce(k, g)
		return
	}
	k.RunPlain(&g)
}

// Assemble generates one tile of the spec's size.
func (v Generator) Assemble(k kernel.Spec) ([]byte, error) {
	if k.Form == kernel.DequantOnce {
		if _, err := dequantizers.Get(k.B); err != nil {
			return nil, err
		}
	}
	if k.Dot == kernel.AMX && k.Compute == kernel.ComputeInt8K {
		if _, err := planeMakers.Get(k.B); err != nil {
			return nil, err
		}
	}
	return v.tile(k).Finish()
}

// Counts returns the instructions of an iteration of that tile.
func (v Generator) Counts(k kernel.Spec) (code.Counts, error) {
	a := v.tile(k)
	switch {
	case k.Dot == kernel.AMX && k.Compute == kernel.ComputeInt8:
		return amxCounts(k, a.Counts()), a.Err()
	case k.Form == kernel.DequantOnce:
		return dequantOnceCounts(k, a.Counts()), a.Err()
	}
	return a.Counts(), a.Err()
}

// Widen generates the function that dequantizes panels of a weight type.
func (v Generator) Widen(b qtype.Type) ([]byte, error) {
	a := asm.New(v.Level)
	emitWiden(a, v.ISA, b)
	return a.Finish()
}

// tile returns the tile before its addresses are resolved.
func (v Generator) tile(k kernel.Spec) *asm.Asm {
	a, s := asm.New(v.Level), spec{k}
	_, emit := s.generator()(a, s)
	emit()
	return a
}

// generator returns the function that allocates the registers of a tile and returns the function
// that emits it. Without an assembler it only counts registers, for Legal.
func (s spec) generator() func(a *asm.Asm, s spec) (_ *emitter, emit func()) {
	switch {
	case s.Dot == kernel.TDPBF16:
		return matrixTile(matrix.BF16Tile)
	case s.Dot == kernel.AMX && s.Compute == kernel.ComputeInt8K:
		return matrixTile(func(a *asm.Asm, k kernel.Spec) func() {
			return matrix.PlanesTile(a, k, func(temps []asm.Vec) *matrix.Unpacking {
				return unpackBetween(a, k.B, temps)
			})
		})
	case s.Dot == kernel.AMX:
		return newAMX
	case s.dequantOnce():
		return newDequantOnce
	case s.Compute.Quantizes():
		return newInt8
	case s.Compute == kernel.ComputeBF16:
		return newBF16
	case s.B.Quantized():
		return newQuantized
	}
	return newFloat
}

// matrixTile adapts a function of package matrix, whose tiles need no register that could be
// missing.
func matrixTile(emit func(a *asm.Asm, s kernel.Spec) func()) func(a *asm.Asm, s spec) (*emitter, func()) {
	return func(a *asm.Asm, s spec) (*emitter, func()) { return &emitter{Asm: a, s: s}, emit(a, s.Spec) }
}

// checkRegisters returns an error if a tile needs more registers than there are. A tile without
// prefetch must leave registers for a prefetch distance, so that any legal tile may get one.
func (s spec) checkRegisters() error {
	if !s.Prefetches() && s.Dot != kernel.AMX && !s.dequantOnce() {
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
