// Package vecgen emits the code of the vector kernels: for x86-64, AVX2+FMA+F16C and AVX-512 from
// one description, and for arm64 (the files neon_*.go).
//
// A kernel works on groups of sixteen float32. With AVX-512 a group is one register; with AVX2 it
// is two, and the body of a loop is emitted once for each half (a "part"). The sixteen virtual
// lanes of a reduction are then the lanes of one accumulator, or of two, so that both levels do the
// same arithmetic in the same order: element i always goes to lane i mod 16, and the lanes are
// added by one tree. Package microkernel holds the plain-Go definition of each kernel.
package vecgen

import (
	"unsafe"

	"sandwich/microkernel/internal/amd64/asm"
)

// Args is what the trampoline hands to a kernel, its address in RDI. Which field means what stands
// at each kernel; lengths and strides in N are in elements unless it says bytes.
type Args struct {
	P [10]unsafe.Pointer
	N [6]int
	F [4]float32
	R [2]int32 // results
}

const (
	offP = 0
	offN = offP + 10*8
	offF = offN + 6*8
	offR = offF + 4*4
)

// group is the number of elements a loop step handles: the virtual lanes.
const group = 16

// Registers with a fixed role. The others are at the disposal of the kernel.
const (
	args    = asm.RDI
	index   = asm.RAX // element index of the running loop
	full    = asm.R10 // where the whole groups end
	left    = asm.R11 // elements in the last, partial group
	maskPtr = asm.R9  // AVX2: where the lane mask of the partial group is read
)

// tailMask and tailHalf are the opmasks of the partial group at AVX-512.
const (
	tailMask = asm.K1
	tailHalf = asm.K2
)

// scratch is the vector register that masked stores of AVX2 and constants that must be in a
// register may overwrite.
const scratch = 15

type gen struct {
	*asm.Asm
	wide  bool // AVX-512: one register per group
	parts int  // registers per group
	masks asm.Mem
}

func newGen(level asm.Level) *gen {
	g := &gen{Asm: asm.New(level), wide: level == asm.AVX512, parts: 2}
	if g.wide {
		g.parts = 1
		var bits [group]uint32
		for i := range bits {
			bits[i] = 1<<i - 1
		}
		g.masks = g.ConstU32s(bits[:]...)
		return g
	}
	// Sixteen set words and sixteen clear ones, back to back: a window that starts 4n bytes before
	// the middle has n set.
	var ones [64]byte
	for i := range ones {
		ones[i] = 0xff
	}
	g.masks = g.Const(ones[:])
	g.Const(make([]byte, 64))
	return g
}

// v is vector register n at the width of the level.
func (g *gen) v(n int) asm.Vec {
	if g.wide {
		return asm.Z(n)
	}
	return asm.Y(n)
}

// Loads of arguments.
func argP(i int) asm.Mem { return asm.At(args, offP+8*i) }
func argN(i int) asm.Mem { return asm.At(args, offN+8*i) }
func argF(i int) asm.Mem { return asm.At(args, offF+4*i) }
func argR(i int) asm.Mem { return asm.At(args, offR+4*i) }

// pointers loads P[0], P[1], ... into the registers.
func (g *gen) pointers(to ...asm.Reg) {
	for i, r := range to {
		g.Mov(r, argP(i))
	}
}

// splat is a memory operand that has the word in every lane, for any instruction that reads a whole
// vector.
func (g *gen) splat(w uint32) asm.Mem {
	if g.wide {
		return g.ConstU32(w).Bcast()
	}
	return g.ConstU32s(w, w, w, w, w, w, w, w)
}

// splatF is splat of a float32.
func (g *gen) splatF(f float32) asm.Mem { return g.splat(*(*uint32)(unsafe.Pointer(&f))) }

// setF puts a float32 into every lane of a register.
func (g *gen) setF(dst asm.Vec, f float32) { g.I(asm.VBROADCASTSS, dst, g.ConstF32(f)) }

// zero clears a register.
func (g *gen) zero(n int) { g.I(asm.VXORPS, asm.X(n), asm.X(n), asm.X(n)) }

// part returns the bytes between the start of a group and its part h, for elements of the given
// size.
func (g *gen) part(h, size int) int { return h * 8 * size }

// elem is the operand of part h of the running group of float32 at base.
func (g *gen) elem(base asm.Reg, h int) asm.Mem {
	return asm.AtIndex(base, index, 4, g.part(h, 4))
}

// load reads float32 lanes; in the partial group the lanes beyond the end are zero and their memory
// is not touched.
func (g *gen) load(dst asm.Vec, m asm.Mem, h int, tail bool) {
	switch {
	case !tail:
		g.I(asm.VMOVUPS, dst, m)
	case g.wide:
		g.I(asm.VMOVUPS, dst.KZ(tailMask), m)
	default:
		g.loadMask(dst, h)
		g.I(asm.VMASKMOVPSL, dst, dst, m)
	}
}

// store writes float32 lanes, in the partial group only those before the end. AVX2 clobbers
// scratch.
func (g *gen) store(m asm.Mem, src asm.Vec, h int, tail bool) {
	switch {
	case !tail:
		g.I(asm.VMOVUPS, m, src)
	case g.wide:
		g.I(asm.VMOVUPS, m.K(tailMask), src)
	default:
		g.loadMask(g.v(scratch), h)
		g.I(asm.VMASKMOVPSS, m, g.v(scratch), src)
	}
}

// loadMask reads the lane mask of part h of the partial group (AVX2).
func (g *gen) loadMask(dst asm.Vec, h int) { g.I(asm.VMOVUPS, dst, asm.At(maskPtr, 32*h)) }

// setTail prepares the masks for a partial group of `left` elements (1 to 15). It clobbers left and
// maskPtr.
func (g *gen) setTail() {
	g.Lea(maskPtr, g.masks)
	if g.wide {
		g.Mov32(left, asm.AtIndex(maskPtr, left, 4, 0))
		g.KMovW(tailMask, left)
		return
	}
	g.Shl(left, 2)
	g.Add(maskPtr, asm.Imm32(64))
	g.Sub(maskPtr, left)
}

// overGroups runs body over the groups of n elements, index counting elements: whole groups in a
// loop, then the partial one with tail set. The body is emitted for each part of a group. n is
// kept; index, full, left, maskPtr are clobbered.
func (g *gen) overGroups(n asm.Reg, body func(h int, tail bool)) {
	g.Xor(index, index)
	g.overRest(n, body)
}

// overRest is overGroups from the present value of index on.
func (g *gen) overRest(n asm.Reg, body func(h int, tail bool)) {
	rest, done := g.NewLabel(), g.NewLabel()
	g.Mov(full, n)
	g.Sub(full, index)
	g.And(full, asm.Imm32(-group))
	g.Add(full, index)
	g.Cmp(index, full)
	g.Jcc(asm.GreaterEqual, rest)
	g.Align(16)
	loop := g.Here()
	for h := range g.parts {
		body(h, false)
	}
	g.Add(index, asm.Imm32(group))
	g.Cmp(index, full)
	g.Jcc(asm.Less, loop)
	g.Bind(rest)
	g.Mov(left, n)
	g.Sub(left, index)
	g.Jcc(asm.LessOrEqual, done)
	g.setTail()
	for h := range g.parts {
		body(h, true)
	}
	g.Bind(done)
}

// overRows runs body for each of `rows` rows; nothing happens when there are none.
func (g *gen) overRows(rows asm.Reg, body func()) {
	done := g.NewLabel()
	g.Test(rows, rows)
	g.Jcc(asm.LessOrEqual, done)
	loop := g.NewLabel()
	g.Bind(loop)
	body()
	g.Dec(rows)
	g.Jcc(asm.NotZero, loop)
	g.Bind(done)
}

// advance adds to a pointer the stride in argument N[i], which counts float32.
func (g *gen) advance(p asm.Reg, i int, tmp asm.Reg) {
	g.Mov(tmp, argN(i))
	g.Lea(p, asm.AtIndex(p, tmp, 4, 0))
}

// sumLanes adds the sixteen lanes of the accumulator (registers acc, and acc+1 with AVX2) by the
// tree of the oracle and leaves the sum in lane 0 of acc. tmp is clobbered.
func (g *gen) sumLanes(acc, tmp int) {
	g.fold(acc, tmp, func(dst, lo, hi asm.Vec) { g.I(asm.VADDPS, dst, lo, hi) })
}

// maxLanes is sumLanes for the maximum; the upper lane is the first source, so that NaN is passed
// over.
func (g *gen) maxLanes(acc, tmp int) {
	g.fold(acc, tmp, func(dst, lo, hi asm.Vec) { g.I(asm.VMAXPS, dst, hi, lo) })
}

func (g *gen) fold(acc, tmp int, op func(dst, lo, hi asm.Vec)) {
	a, t := asm.Y(acc), asm.Y(tmp)
	if g.wide {
		g.I(asm.VEXTRACTF64X4, t, asm.Z(acc), asm.Imm(1))
		op(a, a, t)
	} else {
		op(a, a, asm.Y(acc+1))
	}
	ax, tx := asm.X(acc), asm.X(tmp)
	g.I(asm.VEXTRACTF128, tx, a, asm.Imm(1))
	op(ax, ax, tx)
	g.I(asm.VMOVHLPS, tx, ax, ax)
	op(ax, ax, tx)
	g.I(asm.VMOVSHDUP, tx, ax)
	op(ax, ax, tx)
}

// finish ends the function.
func (g *gen) finish() ([]byte, error) {
	g.VZeroUpper()
	g.Ret()
	return g.Finish()
}
