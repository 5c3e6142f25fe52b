package vector

import (
	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/kernel"
)

// Registers of the quantizers: 32 elements and values derived from them.
const (
	q8X     = 0 // two registers, or four
	q8A     = 4 // the largest magnitude, then sums
	q8Inv   = 5 // 127 over it; a temporary at other times
	q8Sign  = 6 // all bits but the sign
	q8Scale = 7
)

// Pointers of a quantizer: to the elements and to the blocks.
const (
	q8In   = p0
	q8Out  = p1
	q8Bits = asm.R13 // of the largest magnitude
)

// q8Blocks is the number of blocks of a superblock.
const q8Blocks = kernel.ActQ8Group / kernel.ActQ8Block

// q8Regs returns the number of registers that hold 32 elements.
func (g gen) q8Regs() int { return kernel.ActQ8Block / arith.Lanes * g.Parts }

// q8Field returns the operand of a field of the current block.
func q8Field(at int) asm.Mem { return asm.At(q8Out, at) }

// emitQuantizeQ8: P x, row of ActQ8 blocks; N blocks of 32.
func emitQuantizeQ8(g gen) {
	g.startQ8()
	g.OverRows(rows, func() {
		special, store := g.NewLabel(), g.NewLabel()
		g.q8Load()
		g.I(asm.VANDPS, g.V(q8A), g.V(q8Sign), g.V(q8X))
		for i := 1; i < g.q8Regs(); i++ {
			g.I(asm.VANDPS, g.V(q8Inv), g.V(q8Sign), g.V(q8X+i))
			g.I(asm.VPMAXSD, g.V(q8A), g.V(q8A), g.V(q8Inv))
		}
		g.q8Scales(special)
		g.q8Integers(true)
		g.Jmp(store)
		g.Bind(special)
		g.q8Special(true)
		g.Bind(store)
		g.q8Next()
	})
}

// emitQuantizeQ8Superblock: P x, row of ActQ8 blocks; N superblocks of 256, whose eight blocks
// share a scale and have sums of integers only.
func emitQuantizeQ8Superblock(g gen) {
	turns := asm.R14
	g.startQ8()
	each := func(body func()) {
		g.MovImm(turns, q8Blocks)
		loop := g.Here()
		body()
		g.q8Next()
		g.Dec(turns)
		g.Jcc(asm.NotZero, loop)
	}
	g.OverRows(rows, func() {
		special, done := g.NewLabel(), g.NewLabel()
		g.q8SuperblockScales(special)
		each(func() {
			g.q8Load()
			g.I(asm.VMOVAPS, g.V(q8Inv), g.V(q8Group))
			g.q8Integers(false)
		})
		g.Jmp(done)
		g.Bind(special)
		each(func() { g.q8Special(false) })
		g.Bind(done)
	})
}

// q8SuperblockScales computes the scale of 256 elements and its inverse, or jumps to special.
func (g gen) q8SuperblockScales(special asm.Label) {
	g.Zero(q8A)
	for i := range q8Blocks * g.q8Regs() {
		g.I(asm.VANDPS, g.V(q8Inv), g.V(q8Sign), asm.At(q8In, g.V(0).Bytes()*i))
		g.I(asm.VPMAXSD, g.V(q8A), g.V(q8A), g.V(q8Inv))
	}
	g.q8Scales(special)
	g.I(asm.VMOVAPS, g.V(q8Group), g.V(q8Inv))
}

// q8Group holds 127 over the largest magnitude of a superblock.
const q8Group = 8

func (g gen) startQ8() {
	g.pointers(q8In, q8Out)
	g.Mov(rows, argN(0))
	g.I(asm.VBROADCASTSS, g.V(q8Sign), g.ConstU32(^uint32(arith.SignBit)))
}

// q8Load loads 32 elements.
func (g gen) q8Load() {
	for i := range g.q8Regs() {
		g.I(asm.VMOVUPS, g.V(q8X+i), asm.At(q8In, g.V(0).Bytes()*i))
	}
}

// q8Next advances the pointers.
func (g gen) q8Next() {
	g.Add(q8In, asm.Imm32(4*kernel.ActQ8Block))
	g.Add(q8Out, asm.Imm32(kernel.ActQ8Bytes))
}

// q8Scales computes the scale and its inverse from the largest magnitudes in q8A, or jumps to
// special.
func (g gen) q8Scales(special asm.Label) {
	g.FoldInt(asm.VPMAXSD, q8A, q8Inv)
	g.I(asm.VMOVD, q8Bits, asm.X(q8A))
	g.Lea(tmp, asm.At(q8Bits, -arith.TinyQ8Bits))
	g.Cmp(tmp, asm.Imm32(arith.InfBits-arith.TinyQ8Bits))
	g.Jcc(asm.AboveOrEqual, special)
	g.I(asm.VMOVSS, asm.X(q8Inv), g.ConstF32(127))
	g.I(asm.VDIVSS, asm.X(q8Scale), asm.X(q8A), asm.X(q8Inv))
	g.I(asm.VDIVSS, asm.X(q8Inv), asm.X(q8Inv), asm.X(q8A))
	g.I(asm.VBROADCASTSS, g.V(q8Inv), asm.X(q8Inv))
}

// q8Integers quantizes 32 elements and stores their block. With scaled, the sum is multiplied by
// the scale.
func (g gen) q8Integers(scaled bool) {
	g.I(asm.VMOVSS, q8Field(kernel.ActScale), asm.X(q8Scale))
	for i := range g.q8Regs() {
		g.I(asm.VMULPS, g.V(q8X+i), g.V(q8X+i), g.V(q8Inv))
		g.I(asm.VCVTPS2DQ, g.V(q8X+i), g.V(q8X+i))
	}
	g.halfSums(q8X, q8A, q8Inv)
	sum := asm.X(q8A)
	g.I(asm.VMOVD, q8Field(kernel.ActHalfSums), sum)
	g.I(asm.VPMADDWD, asm.X(q8Inv), sum, g.ConstU32s(minus128, minus128, minus128, minus128))
	g.I(asm.VMOVD, q8Field(kernel.ActBias), asm.X(q8Inv))
	g.I(asm.VPMADDWD, sum, sum, g.ConstU32s(pairOfOnes, pairOfOnes, pairOfOnes, pairOfOnes))
	g.I(asm.VCVTDQ2PS, sum, sum)
	if scaled {
		g.I(asm.VMULSS, sum, sum, asm.X(q8Scale))
	}
	g.I(asm.VMOVSS, q8Field(kernel.ActSum), sum)
	g.storeBytes(q8Field(kernel.ActQ), q8X)
}

// q8Special stores a block of zeros with scale 0, or scale NaN if an element is not finite. With
// scaled, the sum gets the scale's value.
func (g gen) q8Special(scaled bool) {
	g.Zero(q8A)
	g.I(asm.VMOVUPS, q8Field(kernel.ActQ), asm.Y(q8A))
	g.Xor(tmp, tmp)
	g.Store32(q8Field(kernel.ActBias), tmp)
	g.Store32(q8Field(kernel.ActHalfSums), tmp)
	if !scaled {
		g.Store32(q8Field(kernel.ActSum), tmp)
	}
	finite := g.NewLabel()
	g.Cmp(q8Bits, asm.Imm32(arith.InfBits))
	g.Jcc(asm.Below, finite)
	g.MovImm(tmp, arith.NaNBits)
	g.Bind(finite)
	g.Store32(q8Field(kernel.ActScale), tmp)
	if scaled {
		g.Store32(q8Field(kernel.ActSum), tmp)
	}
}

// Pairs of 16-bit factors.
const (
	pairOfOnes = 0x00010001
	minus128   = 0xff80ff80
)

// halfSums adds the first and the last sixteen of 32 integers, which fit eight bits each, in the
// registers starting at x; the 16-bit lanes 0 and 1 of a are the sums. It overwrites t.
func (g gen) halfSums(x, a, t int) {
	first, last := asm.X(a), asm.X(t)
	for h, sum := range []int{a, t} {
		if g.Wide {
			g.I(asm.VEXTRACTF64X4, asm.Y(sum), asm.Z(x+h), asm.Imm(1))
			g.I(asm.VPADDD, asm.Y(sum), asm.Y(sum), asm.Y(x+h))
		} else {
			g.I(asm.VPADDD, asm.Y(sum), asm.Y(x+2*h), asm.Y(x+2*h+1))
		}
		g.I(asm.VEXTRACTF128, asm.X(scratch), asm.Y(sum), asm.Imm(1))
		g.I(asm.VPADDD, asm.X(sum), asm.X(sum), asm.X(scratch))
	}
	ones := g.ConstU32s(pairOfOnes, pairOfOnes, pairOfOnes, pairOfOnes)
	g.I(asm.VPACKSSDW, first, first, last)
	g.I(asm.VPMADDWD, first, first, ones)
	g.I(asm.VPACKSSDW, first, first, first)
	g.I(asm.VPMADDWD, first, first, ones)
	g.I(asm.VPACKSSDW, first, first, first)
}

// storeBytes stores 32 integers of the registers starting at x as bytes.
func (g gen) storeBytes(m asm.Mem, x int) {
	if g.Wide {
		g.I(asm.VPMOVSDB, m, asm.Z(x))
		g.I(asm.VPMOVSDB, m.Off(16), asm.Z(x+1))
		return
	}
	g.I(asm.VPACKSSDW, asm.Y(x), asm.Y(x), asm.Y(x+1))
	g.I(asm.VPACKSSDW, asm.Y(x+2), asm.Y(x+2), asm.Y(x+3))
	g.I(asm.VPACKSSWB, asm.Y(x), asm.Y(x), asm.Y(x+2))
	// The packs work within 128-bit halves: dwords 0,4,1,5,2,6,3,7 bring the bytes back in order.
	g.I(asm.VMOVUPS, asm.Y(x+1), g.ConstU32s(0, 4, 1, 5, 2, 6, 3, 7))
	g.I(asm.VPERMD, asm.Y(x), asm.Y(x+1), asm.Y(x))
	g.I(asm.VMOVUPS, m, asm.Y(x))
}
