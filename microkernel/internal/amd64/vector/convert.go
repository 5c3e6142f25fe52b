package vector

import "sandwich/microkernel/internal/amd64/asm"

// emitToF16: P dst, src; N n.
func emitToF16(g gen) {
	const x = 0
	g.pointers(p0, p1)
	g.Mov(n0, argN(0))
	g.OverGroups(n0, func(h int, tail bool) {
		dst := asm.AtIndex(p0, index, 2, g.PartOffset(h, 2))
		switch {
		case g.Wide && tail:
			g.LoadGroup(g.V(x), g.Elem(p1, h), h, true)
			g.I(asm.VCVTPS2PH, asm.Y(x), asm.Z(x), asm.Imm(0))
			g.I(asm.VMOVDQU16, dst.K(tailMask), asm.Y(x))
		case tail:
			g.tailByElement(h, func() {
				g.I(asm.VMOVSS, asm.X(x), g.Elem(p1, 0))
				g.I(asm.VCVTPS2PH, asm.X(x), asm.X(x), asm.Imm(0))
				g.I(asm.VPEXTRW, asm.AtIndex(p0, index, 2, 0), asm.X(x), asm.Imm(0))
			})
		default:
			g.LoadGroup(g.V(x), g.Elem(p1, h), h, false)
			g.I(asm.VCVTPS2PH, dst, g.V(x), asm.Imm(0))
		}
	})
}

// emitToF32: P dst, src; N n.
func emitToF32(g gen) {
	const x = 0
	g.pointers(p0, p1)
	g.Mov(n0, argN(0))
	g.OverGroups(n0, func(h int, tail bool) {
		src := asm.AtIndex(p1, index, 2, g.PartOffset(h, 2))
		switch {
		case g.Wide && tail:
			g.I(asm.VMOVDQU16, asm.Y(x).KZ(tailMask), src)
			g.I(asm.VCVTPH2PS, asm.Z(x), asm.Y(x))
			g.StoreGroup(g.Elem(p0, h), g.V(x), h, true)
		case tail:
			g.tailByElement(h, func() {
				g.MovZX16(tmp, asm.AtIndex(p1, index, 2, 0))
				g.I(asm.VMOVD, asm.X(x), tmp)
				g.I(asm.VCVTPH2PS, asm.X(x), asm.X(x))
				g.I(asm.VMOVSS, g.Elem(p0, 0), asm.X(x))
			})
		default:
			g.I(asm.VCVTPH2PS, g.V(x), src)
			g.StoreGroup(g.Elem(p0, h), g.V(x), h, false)
		}
	})
}

// tailByElement runs body for each element of the partial group, once for both parts: AVX2 has no
// masks for 16-bit elements.
func (g gen) tailByElement(h int, body func()) {
	if h > 0 {
		return
	}
	loop := g.Here()
	body()
	g.Add(index, asm.Imm32(1))
	g.Cmp(index, n0)
	g.Jcc(asm.Less, loop)
}
