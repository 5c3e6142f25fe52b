// Package lanes emits what row operations and attention on amd64 have in common: loops over groups
// of sixteen float32, masked tails, reductions over lanes, and the exponential.
//
// With AVX-512 a group is one register. With AVX2 it is two, and the body of a loop is emitted once
// for each half (a "part"). The sixteen virtual lanes of a reduction are then the lanes of one
// accumulator or of two, so that both do the same arithmetic in the same order: element i always
// belongs to lane i mod 16, and the lanes are added by one tree (package arith).
//
// The package must not import the packages that use it (amd64/vector, amd64/attention).
package lanes

import (
	"math"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/arith"
)

// Registers with a fixed role. The others are free for the operation.
const (
	Args    = asm.RDI // the arguments
	Index   = asm.RAX // element index of the running loop
	full    = asm.R10 // end of the whole groups
	Left    = asm.R11 // elements of the last, partial group
	maskPtr = asm.R9  // AVX2: address of the lane mask of the partial group
)

// TailMask is the opmask of the partial group with AVX-512.
const TailMask = asm.K1

// Scratch is the vector register that masked stores of AVX2, and constants that must be in a
// register, overwrite.
const Scratch = 15

// Gen generates one function.
type Gen struct {
	*asm.Asm
	Wide  bool // AVX-512: one register per group
	Parts int  // registers per group
	masks asm.Mem
}

// New starts an empty function.
func New(level asm.Level) *Gen {
	g := &Gen{Asm: asm.New(level), Wide: level == asm.AVX512, Parts: 2}
	if g.Wide {
		g.Parts = 1
		var bits [arith.Lanes]uint32
		for i := range bits {
			bits[i] = 1<<i - 1
		}
		g.masks = g.ConstU32s(bits[:]...)
		return g
	}
	// Sixteen set words followed by sixteen clear ones: a window that starts 4n bytes before the
	// middle has n set.
	var ones [64]byte
	for i := range ones {
		ones[i] = 0xff
	}
	g.masks = g.Const(ones[:])
	g.Const(make([]byte, 64))
	return g
}

// V returns vector register n at the width of the level.
func (g *Gen) V(n int) asm.Vec {
	if g.Wide {
		return asm.Z(n)
	}
	return asm.Y(n)
}

// Splat returns a memory operand that has the word in every lane, for any instruction that reads a
// whole vector.
func (g *Gen) Splat(w uint32) asm.Mem {
	if g.Wide {
		return g.ConstU32(w).Bcast()
	}
	return g.ConstU32s(w, w, w, w, w, w, w, w)
}

// SplatF is Splat of a float32.
func (g *Gen) SplatF(f float32) asm.Mem { return g.Splat(math.Float32bits(f)) }

// SetF sets every lane of a register to a float32.
func (g *Gen) SetF(dst asm.Vec, f float32) { g.I(asm.VBROADCASTSS, dst, g.ConstF32(f)) }

// Zero clears a register.
func (g *Gen) Zero(n int) { g.I(asm.VXORPS, asm.X(n), asm.X(n), asm.X(n)) }

// PartOffset returns the bytes between the start of a group and its part h, for elements of the
// given size.
func (g *Gen) PartOffset(h, size int) int { return h * 8 * size }

// Elem returns the operand of part h of the running group of float32 at base.
func (g *Gen) Elem(base asm.Reg, h int) asm.Mem {
	return asm.AtIndex(base, Index, 4, g.PartOffset(h, 4))
}

// LoadGroup reads float32 lanes. In the partial group the lanes beyond the end are zero and their
// memory is not accessed.
func (g *Gen) LoadGroup(dst asm.Vec, m asm.Mem, h int, tail bool) {
	switch {
	case !tail:
		g.I(asm.VMOVUPS, dst, m)
	case g.Wide:
		g.I(asm.VMOVUPS, dst.KZ(TailMask), m)
	default:
		g.LoadMask(dst, h)
		g.I(asm.VMASKMOVPSL, dst, dst, m)
	}
}

// StoreGroup writes float32 lanes, in the partial group only those before the end. With AVX2 it
// overwrites Scratch.
func (g *Gen) StoreGroup(m asm.Mem, src asm.Vec, h int, tail bool) {
	switch {
	case !tail:
		g.I(asm.VMOVUPS, m, src)
	case g.Wide:
		g.I(asm.VMOVUPS, m.K(TailMask), src)
	default:
		g.LoadMask(g.V(Scratch), h)
		g.I(asm.VMASKMOVPSS, m, g.V(Scratch), src)
	}
}

// LoadMask reads the lane mask of part h of the partial group (AVX2).
func (g *Gen) LoadMask(dst asm.Vec, h int) { g.I(asm.VMOVUPS, dst, asm.At(maskPtr, 32*h)) }

// End ends the function and returns its code.
func (g *Gen) End() ([]byte, error) {
	g.VZeroUpper()
	g.Ret()
	return g.Finish()
}
