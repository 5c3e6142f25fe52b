package vecgen

import (
	"math"

	"sandwich/microkernel/internal/amd64/asm"
)

const negInfBits = 0xff800000

var negInf = float32(math.Inf(-1))

// lowest is what the maximum of a row's scores begins from, microkernel's lowestScore.
const lowest = -0x1p100

// emitSoftmax: P scores, valid, max, sum; N stride, rows, width; F scale.
func emitSoftmax(g *gen) {
	const acc, t, x, p, n, z, scale, top, zero = 0, 2, 3, 4, 5, 6, 7, 8, 9
	r := expRange{lo: 10, hi: -1}
	s, valid, maxP, sumP, width := p0, p1, p2, asm.R13, n0
	nv := asm.R15
	g.pointers(s, valid, maxP, sumP)
	g.Mov(rows, argN(1))
	g.Mov(width, argN(2))
	g.I(asm.VBROADCASTSS, g.v(scale), argF(0))
	g.zero(zero)
	g.setExpRange(r)
	g.overRows(rows, func() {
		g.MovSXD(nv, asm.At(valid, 0))
		g.rowMax(s, nv, acc, x, t)
		unseen := g.NewLabel()
		g.Cmp(nv, asm.Imm32(0))
		g.Jcc(asm.Zero, unseen)
		g.I(asm.VMAXSS, asm.X(acc), asm.X(acc), g.ConstF32(lowest))
		g.Bind(unseen)
		g.I(asm.VMULSS, asm.X(acc), asm.X(acc), asm.X(scale))
		g.I(asm.VMOVSS, asm.At(maxP, 0), asm.X(acc))
		g.I(asm.VBROADCASTSS, g.v(top), asm.X(acc))
		g.zero(acc)
		g.zero(acc + 1)
		g.overGroups(nv, func(h int, tail bool) {
			g.load(g.v(x), g.elem(s, h), h, tail)
			g.I(asm.VMULPS, g.v(x), g.v(x), g.v(scale))
			g.I(asm.VSUBPS, g.v(x), g.v(x), g.v(top))
			g.exp(p, x, n, z, r)
			g.store(g.elem(s, h), g.v(p), h, tail)
			g.addLanes(acc, p, x, h, tail)
		})
		g.sumLanes(acc, t)
		g.I(asm.VMOVSS, asm.At(sumP, 0), asm.X(acc))
		g.Mov(index, nv)
		g.overRest(width, func(h int, tail bool) { g.store(g.elem(s, h), g.v(zero), h, tail) })
		g.advance(s, 0, tmp)
		g.Add(valid, asm.Imm32(4))
		g.Add(maxP, asm.Imm32(4))
		g.Add(sumP, asm.Imm32(4))
	})
}

// rowMax leaves the maximum of n elements in lane 0 of acc (acc+1 is used with AVX2). x and t are
// clobbered.
func (g *gen) rowMax(row, n asm.Reg, acc, x, t int) {
	for h := range g.parts {
		g.setF(g.v(acc+h), negInf)
	}
	g.overGroups(n, func(h int, tail bool) {
		g.load(g.v(x), g.elem(row, h), h, tail)
		a := g.v(acc + h)
		switch {
		case !tail:
			g.I(asm.VMAXPS, a, g.v(x), a)
		case g.wide:
			g.I(asm.VMAXPS, a.K(tailMask), g.v(x), a)
		default:
			g.I(asm.VMAXPS, g.v(x), g.v(x), a)
			g.loadMask(g.v(t), h)
			g.I(asm.VBLENDVPS, a, a, g.v(x), g.v(t))
		}
	})
	g.maxLanes(acc, t)
}

// addLanes adds p to part h of the accumulator, in the partial group only the lanes before the end.
func (g *gen) addLanes(acc, p, t, h int, tail bool) {
	a := g.v(acc + h)
	switch {
	case !tail:
		g.I(asm.VADDPS, a, a, g.v(p))
	case g.wide:
		g.I(asm.VADDPS, a.K(tailMask), a, g.v(p))
	default:
		g.loadMask(g.v(t), h)
		g.I(asm.VANDPS, g.v(p), g.v(p), g.v(t))
		g.I(asm.VADDPS, a, a, g.v(p))
	}
}

// emitMerge: P o, m, s, ob, mb, sb; N oStride, obStride, rows, headDim.
func emitMerge(g *gen) {
	const top, pair, p, n, z, s, t, a, b, x, zero = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
	r := expRange{lo: 11, hi: -1}
	o, m, sum, ob, mb, sb := p0, p1, p2, asm.R13, asm.R14, asm.R15
	g.pointers(o, m, sum, ob, mb, sb)
	g.Mov(rows, argN(2))
	g.Mov(n0, argN(3))
	g.zero(zero)
	g.setExpRange(r)
	g.overRows(rows, func() {
		first, next := g.NewLabel(), g.NewLabel()
		g.MovSXD(tmp, asm.At(mb, 0))
		g.Cmp(tmp, asm.Imm32(negInfBits-1<<32))
		g.Jcc(asm.Zero, next)
		g.I(asm.VMOVSS, asm.X(b), asm.At(mb, 0))
		g.I(asm.VMOVSS, asm.X(s), asm.At(sb, 0))
		g.MovSXD(tmp, asm.At(m, 0))
		g.Cmp(tmp, asm.Imm32(negInfBits-1<<32))
		g.Jcc(asm.Zero, first)

		g.I(asm.VMOVSS, asm.X(a), asm.At(m, 0))
		g.I(asm.VMAXSS, asm.X(top), asm.X(b), asm.X(a))
		g.I(asm.VMOVSS, asm.At(m, 0), asm.X(top))
		g.I(asm.VSUBSS, asm.X(a), asm.X(a), asm.X(top))
		g.I(asm.VSUBSS, asm.X(b), asm.X(b), asm.X(top))
		g.I(asm.VUNPCKLPS, asm.X(pair), asm.X(a), asm.X(b))
		g.expAt(asm.X(p), asm.X(p), asm.X(pair), asm.X(n), asm.X(z), asm.X(r.lo), nil)
		g.I(asm.VBROADCASTSS, g.v(a), asm.X(p))
		g.I(asm.VMOVSHDUP, asm.X(p), asm.X(p))
		g.I(asm.VBROADCASTSS, g.v(b), asm.X(p))
		g.I(asm.VMULSS, asm.X(t), asm.X(s), asm.X(b))
		g.I(asm.VMOVSS, asm.X(s), asm.At(sum, 0))
		g.I(asm.VFMADD213SS, asm.X(s), asm.X(a), asm.X(t))
		g.I(asm.VMOVSS, asm.At(sum, 0), asm.X(s))
		g.overGroups(n0, func(h int, tail bool) {
			g.load(g.v(t), g.elem(ob, h), h, tail)
			g.load(g.v(x), g.elem(o, h), h, tail)
			g.I(asm.VADDPS, g.v(t), g.v(t), g.v(zero))
			g.I(asm.VMULPS, g.v(t), g.v(t), g.v(b))
			g.I(asm.VFMADD213PS, g.v(x), g.v(a), g.v(t))
			g.store(g.elem(o, h), g.v(x), h, tail)
		})
		g.Jmp(next)

		g.Bind(first)
		g.I(asm.VMOVSS, asm.At(m, 0), asm.X(b))
		g.I(asm.VMOVSS, asm.At(sum, 0), asm.X(s))
		g.overGroups(n0, func(h int, tail bool) {
			g.load(g.v(t), g.elem(ob, h), h, tail)
			g.I(asm.VADDPS, g.v(t), g.v(t), g.v(zero))
			g.store(g.elem(o, h), g.v(t), h, tail)
		})
		g.Bind(next)
		g.advance(o, 0, tmp)
		g.advance(ob, 1, tmp)
		for _, p := range []asm.Reg{m, sum, mb, sb} {
			g.Add(p, asm.Imm32(4))
		}
	})
}

// emitFinish: P dst, o, s; N dstStride, oStride, rows, headDim.
func emitFinish(g *gen) {
	const inv, x = 0, 1
	g.pointers(p0, p1, p2)
	g.Mov(rows, argN(2))
	g.Mov(n0, argN(3))
	g.overRows(rows, func() {
		g.I(asm.VMOVSS, asm.X(inv), g.ConstF32(1))
		g.I(asm.VDIVSS, asm.X(inv), asm.X(inv), asm.At(p2, 0))
		g.I(asm.VBROADCASTSS, g.v(inv), asm.X(inv))
		g.overGroups(n0, func(h int, tail bool) {
			g.load(g.v(x), g.elem(p1, h), h, tail)
			g.I(asm.VMULPS, g.v(x), g.v(x), g.v(inv))
			g.store(g.elem(p0, h), g.v(x), h, tail)
		})
		g.advance(p0, 0, tmp)
		g.advance(p1, 1, tmp)
		g.Add(p2, asm.Imm32(4))
	})
}
