package vector

import (
	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/kernel"
)

// emitQuantizeQ8K: P x, row of ActQ8K superblocks; N superblocks.
func emitQuantizeQ8K(g gen) {
	g.startQ8()
	g.OverRows(rows, func() {
		special, next := g.NewLabel(), g.NewLabel()
		g.q8SuperblockScales(special)
		for b := range q8Blocks {
			g.q8Load()
			g.I(asm.VMOVAPS, g.V(q8Inv), g.V(q8Group))
			g.q8KBlock(b)
			g.Add(q8In, asm.Imm32(4*kernel.ActQ8Block))
		}
		g.Xor(tmp, tmp)
		for at := kernel.ActKScale + 4; at < kernel.ActQ8KBytes; at += 4 {
			g.Store32(q8Field(at), tmp)
		}
		g.I(asm.VMOVSS, q8Field(kernel.ActKScale), asm.X(q8Scale))
		g.Jmp(next)
		g.Bind(special)
		g.q8KSpecial()
		g.Bind(next)
		g.Add(q8Out, asm.Imm32(kernel.ActQ8KBytes))
	})
}

// q8KBlock quantizes the 32 elements of block b of a superblock.
func (g gen) q8KBlock(b int) {
	for i := range g.q8Regs() {
		g.I(asm.VMULPS, g.V(q8X+i), g.V(q8X+i), g.V(q8Inv))
		g.I(asm.VCVTPS2DQ, g.V(q8X+i), g.V(q8X+i))
	}
	g.halfSums(q8X, q8A, q8Inv)
	sum := asm.X(q8A)
	g.I(asm.VMOVD, q8Field(kernel.ActKHalfSums+4*b), sum)
	g.I(asm.VPMADDWD, sum, sum, g.ConstU32s(pairOfOnes, pairOfOnes, pairOfOnes, pairOfOnes))
	g.I(asm.VPEXTRW, q8Field(kernel.ActKSums+2*b), sum, asm.Imm(0))
	g.storeBytes(q8Field(kernel.ActQ8Block*b), q8X)
}

// q8KSpecial stores a superblock of zeros with scale 0, or scale NaN if an element is not finite.
func (g gen) q8KSpecial() {
	g.Zero(q8A)
	for at := 0; at < kernel.ActQ8KBytes; at += 32 {
		g.I(asm.VMOVUPS, q8Field(at), asm.Y(q8A))
	}
	finite := g.NewLabel()
	g.Cmp(q8Bits, asm.Imm32(arith.InfBits))
	g.Jcc(asm.Below, finite)
	g.MovImm(tmp, arith.NaNBits)
	g.Store32(q8Field(kernel.ActKScale), tmp)
	g.Bind(finite)
	g.Add(q8In, asm.Imm32(4*kernel.ActQ8Group))
}
