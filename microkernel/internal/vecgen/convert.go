package vecgen

import "sandwich/microkernel/internal/asm"

const (
	tinyBits = 0x03800000 // 2^-120
	infBits  = 0x7f800000
	nanBits  = 0x7fc00000
)

// emitQuantizeQ8: P x, row of ActQ8 blocks; N blocks of 32. A block is 48 bytes: scale, -128 times
// the sum of the integers, the integers, the sums of their halves, the sum times the scale.
func emitQuantizeQ8(g *gen) {
	const x, a, inv, sgn = 0, 4, 5, 6 // x takes 32 elements: two registers, or four
	regs := 32 / group * g.parts
	step := g.v(0).Bytes()
	xp, out, bits := p0, p1, asm.R13
	scale, bias, ints, halves, sum := asm.At(out, 0), asm.At(out, 4), asm.At(out, 8), asm.At(out, 40), asm.At(out, 44)
	g.pointers(xp, out)
	g.Mov(rows, argN(0))
	g.I(asm.VBROADCASTSS, g.v(sgn), g.ConstU32(0x7fffffff))
	g.overRows(rows, func() {
		special, store := g.NewLabel(), g.NewLabel()
		for i := range regs {
			g.I(asm.VMOVUPS, g.v(x+i), asm.At(xp, step*i))
		}
		g.I(asm.VANDPS, g.v(a), g.v(sgn), g.v(x))
		for i := 1; i < regs; i++ {
			g.I(asm.VANDPS, g.v(inv), g.v(sgn), g.v(x+i))
			g.I(asm.VPMAXSD, g.v(a), g.v(a), g.v(inv))
		}
		g.foldInt(asm.VPMAXSD, a, inv)
		g.I(asm.VMOVD, bits, asm.X(a))
		g.Lea(tmp, asm.At(bits, -tinyBits))
		g.Cmp(tmp, asm.Imm32(infBits-tinyBits))
		g.Jcc(asm.AboveOrEqual, special)
		g.I(asm.VMOVSS, asm.X(inv), g.ConstF32(127))
		g.I(asm.VDIVSS, asm.X(7), asm.X(a), asm.X(inv)) // the scale
		g.I(asm.VMOVSS, scale, asm.X(7))
		g.I(asm.VDIVSS, asm.X(inv), asm.X(inv), asm.X(a))
		g.I(asm.VBROADCASTSS, g.v(inv), asm.X(inv))
		for i := range regs {
			g.I(asm.VMULPS, g.v(x+i), g.v(x+i), g.v(inv))
			g.I(asm.VCVTPS2DQ, g.v(x+i), g.v(x+i))
		}
		g.halfSums(x, a, inv)
		g.I(asm.VMOVD, halves, asm.X(a))
		g.I(asm.VPMADDWD, asm.X(inv), asm.X(a), g.ConstU32s(minus128, minus128, minus128, minus128))
		g.I(asm.VMOVD, bias, asm.X(inv))
		g.I(asm.VPMADDWD, asm.X(a), asm.X(a), g.ConstU32s(pairOfOnes, pairOfOnes, pairOfOnes, pairOfOnes))
		g.I(asm.VCVTDQ2PS, asm.X(a), asm.X(a))
		g.I(asm.VMULSS, asm.X(a), asm.X(a), asm.X(7))
		g.I(asm.VMOVSS, sum, asm.X(a))
		g.storeBytes(ints, x)
		g.Jmp(store)

		g.Bind(special)
		g.zero(a)
		g.I(asm.VMOVUPS, ints, asm.Y(a))
		g.Xor(tmp, tmp)
		g.Store32(bias, tmp)
		g.Store32(halves, tmp)
		finite := g.NewLabel()
		g.Cmp(bits, asm.Imm32(infBits))
		g.Jcc(asm.Below, finite)
		g.MovImm(tmp, nanBits)
		g.Bind(finite)
		g.Store32(scale, tmp)
		g.Store32(sum, tmp)

		g.Bind(store)
		g.Add(xp, asm.Imm32(128))
		g.Add(out, asm.Imm32(48))
	})
}

// Pairs of 16-bit factors.
const (
	pairOfOnes = 0x00010001
	minus128   = 0xff80ff80
)

// halfSums adds up the first and the last sixteen of 32 integers in the registers from x on, which
// fit eight bits each; the 16-bit lanes 0 and 1 of a are the sums. t is overwritten.
func (g *gen) halfSums(x, a, t int) {
	first, last := asm.X(a), asm.X(t)
	for h, sum := range []int{a, t} {
		if g.wide {
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

// foldInt reduces the integer lanes of register a with op; the result is in lane 0.
func (g *gen) foldInt(op *asm.Op, a, t int) {
	if g.wide {
		g.I(asm.VEXTRACTF64X4, asm.Y(t), asm.Z(a), asm.Imm(1))
		g.I(op, asm.Y(a), asm.Y(a), asm.Y(t))
	}
	g.I(asm.VEXTRACTF128, asm.X(t), asm.Y(a), asm.Imm(1))
	g.I(op, asm.X(a), asm.X(a), asm.X(t))
	g.I(asm.VPSHUFD, asm.X(t), asm.X(a), asm.Imm(0x0E))
	g.I(op, asm.X(a), asm.X(a), asm.X(t))
	g.I(asm.VPSHUFD, asm.X(t), asm.X(a), asm.Imm(0x01))
	g.I(op, asm.X(a), asm.X(a), asm.X(t))
}

// storeBytes stores 32 integers of the registers from x as bytes.
func (g *gen) storeBytes(m asm.Mem, x int) {
	if g.wide {
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

// emitToF16: P dst, src; N n.
func emitToF16(g *gen) {
	const x = 0
	g.pointers(p0, p1)
	g.Mov(n0, argN(0))
	g.overGroups(n0, func(h int, tail bool) {
		dst := asm.AtIndex(p0, index, 2, g.part(h, 2))
		switch {
		case g.wide && tail:
			g.load(g.v(x), g.elem(p1, h), h, true)
			g.I(asm.VCVTPS2PH, asm.Y(x), asm.Z(x), asm.Imm(0))
			g.I(asm.VMOVDQU16, dst.K(tailMask), asm.Y(x))
		case tail:
			g.tailByElement(h, func() {
				g.I(asm.VMOVSS, asm.X(x), g.elem(p1, 0))
				g.I(asm.VCVTPS2PH, asm.X(x), asm.X(x), asm.Imm(0))
				g.I(asm.VPEXTRW, asm.AtIndex(p0, index, 2, 0), asm.X(x), asm.Imm(0))
			})
		default:
			g.load(g.v(x), g.elem(p1, h), h, false)
			g.I(asm.VCVTPS2PH, dst, g.v(x), asm.Imm(0))
		}
	})
}

// emitToF32: P dst, src; N n.
func emitToF32(g *gen) {
	const x = 0
	g.pointers(p0, p1)
	g.Mov(n0, argN(0))
	g.overGroups(n0, func(h int, tail bool) {
		src := asm.AtIndex(p1, index, 2, g.part(h, 2))
		switch {
		case g.wide && tail:
			g.I(asm.VMOVDQU16, asm.Y(x).KZ(tailMask), src)
			g.I(asm.VCVTPH2PS, asm.Z(x), asm.Y(x))
			g.store(g.elem(p0, h), g.v(x), h, true)
		case tail:
			g.tailByElement(h, func() {
				g.MovZX16(tmp, asm.AtIndex(p1, index, 2, 0))
				g.I(asm.VMOVD, asm.X(x), tmp)
				g.I(asm.VCVTPH2PS, asm.X(x), asm.X(x))
				g.I(asm.VMOVSS, g.elem(p0, 0), asm.X(x))
			})
		default:
			g.I(asm.VCVTPH2PS, g.v(x), src)
			g.store(g.elem(p0, h), g.v(x), h, false)
		}
	})
}

// tailByElement runs body for each element of the partial group, once for both parts: AVX2 has no
// masks for 16-bit elements.
func (g *gen) tailByElement(h int, body func()) {
	if h > 0 {
		return
	}
	loop := g.Here()
	body()
	g.Add(index, asm.Imm32(1))
	g.Cmp(index, n0)
	g.Jcc(asm.Less, loop)
}
