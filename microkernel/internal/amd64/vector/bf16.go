package vector

import "sandwich/microkernel/internal/amd64/asm"

// emitRoundBF16 rounds to bfloat16: P dst, src; N n. Magnitudes below minimum, given as float32
// bits, become zeros. Integer instructions suffice, so that it needs no CPU with bfloat16.
func emitRoundBF16(g gen, minimum uint32) {
	const x, t = 0, 1
	g.pointers(p0, p1)
	g.Mov(n0, argN(0))
	g.OverGroups(n0, func(h int, tail bool) {
		dst := asm.AtIndex(p0, index, 2, g.PartOffset(h, 2))
		switch {
		case g.Wide:
			g.LoadGroup(g.V(x), g.Elem(p1, h), h, tail)
			g.roundBF16(x, t, minimum)
			if tail {
				dst = dst.K(tailMask)
			}
			g.I(asm.VPMOVDW, dst, asm.Z(t))
		case tail:
			g.tailByElement(h, func() {
				g.I(asm.VMOVSS, asm.X(x), g.Elem(p1, 0))
				g.roundBF16(x, t, minimum)
				g.I(asm.VPEXTRW, asm.AtIndex(p0, index, 2, 0), asm.X(t), asm.Imm(0))
			})
		default:
			g.LoadGroup(g.V(x), g.Elem(p1, h), h, false)
			g.roundBF16(x, t, minimum)
			g.I(asm.VEXTRACTI128, asm.X(x), asm.Y(t), asm.Imm(1))
			g.I(asm.VPACKUSDW, asm.X(t), asm.X(t), asm.X(x))
			g.I(asm.VMOVUPS, dst, asm.X(t))
		}
	})
}

// roundBF16 rounds the float32 of register x to bfloat16 in the words of register t, or to zeros
// below minimum. It overwrites the two registers after t.
func (g gen) roundBF16(x, t int, minimum uint32) {
	g.RoundUpper(x, t, minimum)
	g.I(asm.VPSRLD, g.V(t), g.V(t), asm.Imm(16))
}
