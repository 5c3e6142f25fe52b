// Package x86 is the backend of amd64: AVX2 and AVX-512, with VNNI, AMX and the dot product of
// bfloat16 on top.
package gemm

import (
	"fmt"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/code"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/internal/vecgen"
	"sandwich/microkernel/qtype"
)

// target is one of the two instruction sets.
type target struct {
	name      string
	isa       kernel.ISA
	level     asm.Level
	needs     kernel.Features
	lanes     int
	registers int
	ports     int
	forms     []kernel.Form
	dots      []kernel.Dot
	peaks     map[string]peak
}

func init() {
	kernel.Register(kernel.AVX2, &target{
		name: "avx2", isa: kernel.AVX2, level: asm.AVX2, needs: kernel.HasAVX2, lanes: 8, registers: 16, ports: 3,
		forms: []kernel.Form{kernel.Load}, dots: []kernel.Dot{kernel.AVXVNNI, kernel.MAdd}, peaks: peaksAVX2,
	})
	kernel.Register(kernel.AVX512, &target{
		name: "avx512", isa: kernel.AVX512, level: asm.AVX512, needs: kernel.HasAVX2 | kernel.HasAVX512,
		lanes: 16, registers: 32, ports: 2,
		forms: []kernel.Form{kernel.Load, kernel.Embed, kernel.Once},
		dots:  []kernel.Dot{kernel.VNNI, kernel.MAdd, kernel.AMX, kernel.DPBF16}, peaks: peaksAVX512,
	})
}

func (t *target) Name() string           { return t.name }
func (t *target) Needs() kernel.Features { return t.needs }
func (t *target) Lanes() int             { return t.lanes }
func (t *target) Registers() int         { return t.registers }
func (t *target) IntegerPorts() int      { return t.ports }
func (t *target) Forms() []kernel.Form   { return t.forms }
func (t *target) Dots() []kernel.Dot     { return t.dots }

// spec is a spec with what this backend knows about it.
type spec struct{ kernel.Spec }

// Legal says what a tile has no instructions or no registers for.
func (t *target) Legal(k kernel.Spec) error {
	s := spec{k}
	switch {
	case s.Dot == kernel.AMX:
		if err := s.validateAMX(); err != nil {
			return err
		}
	case s.once():
		if err := s.validateOnce(); err != nil {
			return err
		}
	case s.Dot == kernel.MAdd && s.Form == kernel.Embed:
		return fmt.Errorf("the multiply-add has no embedded broadcast")
	case s.Dot == kernel.MAdd && s.signedDot() && s.wide() && s.NR/qtype.PanelWidth > flipMasks:
		return fmt.Errorf("the signs of %d panels do not fit the %d opmasks", s.NR/qtype.PanelWidth, flipMasks)
	}
	return s.checkRegisters()
}

// Worth takes the highest tile of AMX, since a lower one is one of its tails, and of four panels or
// eight, which share the packing of rows.
func (t *target) Worth(s kernel.Spec) bool {
	return s.MR == amxRows && (s.NR == amxPanels*qtype.PanelWidth || s.NR == amxPanels/2*qtype.PanelWidth)
}

// Code is one panel of AMX, which is the code of any number of them.
func (t *target) Code(s kernel.Spec) kernel.Spec {
	if s.Dot == kernel.AMX {
		s.NR = qtype.PanelWidth
	}
	return s
}

// SpecNeeds is nothing: what a dot product needs says it all.
func (t *target) SpecNeeds(kernel.Spec) kernel.Features { return 0 }

// Doubt: no machine that the kernels of AMX were written on had it.
func (t *target) Doubt(s kernel.Spec) string {
	if s.Dot == kernel.AMX {
		return kernel.VNNI.String()
	}
	return ""
}

// Run is one call of a kernel.
func (t *target) Run(k *kernel.Tiles, g kernel.GemmArgs) {
	switch {
	case k.Spec.Dot == kernel.AMX:
		runAMX(k, &g)
		return
	case k.Spec.Form == kernel.Once:
		runOnce(k, g)
		return
	}
	k.RunPlain(&g)
}

// Assemble generates one tile of the spec's size.
func (t *target) Assemble(k kernel.Spec) ([]byte, error) {
	if k.Form == kernel.Once {
		if _, err := unpackerOf(k.B); err != nil {
			return nil, err
		}
	}
	return t.tile(k).Finish()
}

// Counts is the instructions of an iteration of that tile.
func (t *target) Counts(k kernel.Spec) (code.Counts, error) {
	a := t.tile(k)
	switch {
	case k.Dot == kernel.AMX:
		return amxCounts(k, a.Counts()), a.Err()
	case k.Form == kernel.Once:
		return onceCounts(k, a.Counts()), a.Err()
	}
	return a.Counts(), a.Err()
}

// tile is the tile before its addresses are known.
func (t *target) tile(k kernel.Spec) *asm.Asm {
	a, s := asm.New(t.level), spec{k}
	_, emit := s.generator()(a, s)
	emit()
	return a
}

// assemble runs emit on an empty function and returns its machine code. Emitting an instruction
// beyond the instruction set is an error.
func (t *target) assemble(emit func(a *asm.Asm)) ([]byte, error) {
	a := asm.New(t.level)
	emit(a)
	return a.Finish()
}

// Widen generates the widener of a weight type.
func (t *target) Widen(b qtype.Type) ([]byte, error) {
	return t.assemble(func(a *asm.Asm) { emitWiden(a, t.isa, b) })
}

// Vector generates a kernel of a row.
func (t *target) Vector(k vecgen.Kernel) ([]byte, error) { return vecgen.Generate(t.level, k) }

// Fused generates attention over a block.
func (t *target) Fused(f vecgen.Fused) ([]byte, error) { return vecgen.GenerateFused(t.level, f) }

// FusedRows is the most rows that Fused takes.
func (t *target) FusedRows(d vecgen.Dot) int { return vecgen.MaxRows(t.level, d) }

// Pairs generates what brings a block of the cache into pairs of bfloat16.
func (t *target) Pairs(f vecgen.Fused) ([]byte, error) { return vecgen.GeneratePairs(t.level, f) }
