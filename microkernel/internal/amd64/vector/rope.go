package vector

import "sandwich/microkernel/internal/amd64/asm"

// emitRoPEHalves: P x, cos, sin; N dim/2, heads, headStride. It rotates element i with element i +
// dim/2. The angles of a group are loaded once for all heads.
func emitRoPEHalves(g gen) {
	const c, s, a, b, t = 0, 2, 4, 5, 6 // c and s take two registers with AVX2
	head, upper := p0, asm.R13
	g.Mov(p1, argP(1))
	g.Mov(p2, argP(2))
	g.Mov(n0, argN(0))
	perGroup := func(h int, tail bool) {
		g.LoadGroup(g.V(c+h), g.Elem(p1, h), h, tail)
		g.LoadGroup(g.V(s+h), g.Elem(p2, h), h, tail)
		g.Mov(head, argP(0))
		g.Mov(rows, argN(1))
		g.OverRows(rows, func() {
			g.Lea(upper, asm.AtIndex(head, n0, 4, 0))
			g.LoadGroup(g.V(a), g.Elem(head, h), h, tail)
			g.LoadGroup(g.V(b), g.Elem(upper, h), h, tail)
			g.I(asm.VMULPS, g.V(t), g.V(b), g.V(s+h))
			g.I(asm.VFMSUB231PS, g.V(t), g.V(a), g.V(c+h))
			g.I(asm.VMULPS, g.V(b), g.V(b), g.V(c+h))
			g.I(asm.VFMADD231PS, g.V(b), g.V(a), g.V(s+h))
			g.StoreGroup(g.Elem(head, h), g.V(t), h, tail)
			g.StoreGroup(g.Elem(upper, h), g.V(b), h, tail)
			g.advance(head, 2, tmp)
		})
	}
	g.OverGroups(n0, perGroup)
}

// emitRoPEPairs: P x, cos, sin; N dim (a multiple of 16), heads, headStride. It rotates element 2i
// with element 2i+1: with A and B the even and the odd elements in both places of a pair, the
// result is A*(c,s) + B*(-s,c).
func emitRoPEPairs(g gen) {
	const cs, sc, x, b, t = 0, 1, 2, 3, 4
	const even = 5 // sign bit in the even lanes
	half, head := asm.R13, p0
	g.Mov(p1, argP(1))
	g.Mov(p2, argP(2))
	g.Mov(n0, argN(0))
	sign := make([]uint32, 8*(3-g.Parts))
	for i := 0; i < len(sign); i += 2 {
		sign[i] = 1 << 31
	}
	g.I(asm.VMOVUPS, g.V(even), g.ConstU32s(sign...))
	g.OverGroups(n0, func(h int, tail bool) {
		if tail {
			return // dim is a multiple of 16
		}
		g.Mov(half, index)
		g.Shr(half, 1)
		g.interleave(cs, t, asm.AtIndex(p1, half, 4, 16*h), asm.AtIndex(p2, half, 4, 16*h))
		g.I(asm.VPERMILPS, g.V(sc), g.V(cs), asm.Imm(0xB1))
		g.I(asm.VXORPS, g.V(sc), g.V(sc), g.V(even))
		g.Mov(head, argP(0))
		g.Mov(rows, argN(1))
		g.OverRows(rows, func() {
			g.LoadGroup(g.V(x), g.Elem(head, h), h, false)
			g.I(asm.VMOVSHDUP, g.V(b), g.V(x))
			g.I(asm.VMOVSLDUP, g.V(x), g.V(x))
			g.I(asm.VMULPS, g.V(b), g.V(b), g.V(sc))
			g.I(asm.VFMADD231PS, g.V(b), g.V(x), g.V(cs))
			g.StoreGroup(g.Elem(head, h), g.V(b), h, false)
			g.advance(head, 2, tmp)
		})
	})
}

// interleave builds (c0, s0, c1, s1, ...) for the pairs of one register.
func (g gen) interleave(dst, t int, c, s asm.Mem) {
	if g.Wide {
		g.I(asm.VMOVUPS, asm.Z(dst), g.ConstU32s(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15))
		g.I(asm.VMOVUPS, asm.Y(t), c)
		g.I(asm.VINSERTF64X4, asm.Z(t), asm.Z(t), s, asm.Imm(1))
		g.I(asm.VPERMPS, asm.Z(dst), asm.Z(dst), asm.Z(t))
		return
	}
	g.I(asm.VMOVUPS, asm.X(t), c)
	g.I(asm.VUNPCKLPS, asm.X(dst), asm.X(t), s)
	g.I(asm.VUNPCKHPS, asm.X(t), asm.X(t), s)
	g.I(asm.VINSERTF128, asm.Y(dst), asm.Y(dst), asm.X(t), asm.Imm(1))
}
