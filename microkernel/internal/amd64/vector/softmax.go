package vector

import (
	"math"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/amd64/lanes"
	"sandwich/microkernel/internal/arith"
)

var negInf = float32(math.Inf(-1))

// emitSoftmax: P scores, valid, max, sum; N stride, rows, width; F scale.
func emitSoftmax(g gen) {
	const acc, t, x, p, n, z, scale, top, zero = 0, 2, 3, 4, 5, 6, 7, 8, 9
	r := lanes.ExpRange{Lo: 10, Hi: -1}
	s, valid, maxP, sumP, width := p0, p1, p2, asm.R13, n0
	nv := asm.R15
	g.pointers(s, valid, maxP, sumP)
	g.Mov(rows, argN(1))
	g.Mov(width, argN(2))
	g.I(asm.VBROADCASTSS, g.V(scale), argF(0))
	g.Zero(zero)
	g.SetExpRange(r)
	g.OverRows(rows, func() {
		g.MovSXD(nv, asm.At(valid, 0))
		g.rowMax(s, nv, acc, x, t)
		unseen := g.NewLabel()
		g.Cmp(nv, asm.Imm32(0))
		g.Jcc(asm.Zero, unseen)
		g.I(asm.VMAXSS, asm.X(acc), asm.X(acc), g.ConstF32(arith.LowestScore))
		g.Bind(unseen)
		g.I(asm.VMULSS, asm.X(acc), asm.X(acc), asm.X(scale))
		g.I(asm.VMOVSS, asm.At(maxP, 0), asm.X(acc))
		g.I(asm.VBROADCASTSS, g.V(top), asm.X(acc))
		g.Zero(acc)
		g.Zero(acc + 1)
		g.OverGroups(nv, func(h int, tail bool) {
			g.LoadGroup(g.V(x), g.Elem(s, h), h, tail)
			g.I(asm.VMULPS, g.V(x), g.V(x), g.V(scale))
			g.I(asm.VSUBPS, g.V(x), g.V(x), g.V(top))
			g.Exp(p, x, n, z, r)
			g.StoreGroup(g.Elem(s, h), g.V(p), h, tail)
			g.addLanes(acc, p, x, h, tail)
		})
		g.SumLanes(acc, t)
		g.I(asm.VMOVSS, asm.At(sumP, 0), asm.X(acc))
		g.Mov(index, nv)
		g.OverRest(width, func(h int, tail bool) { g.StoreGroup(g.Elem(s, h), g.V(zero), h, tail) })
		g.advance(s, 0, tmp)
		g.Add(valid, asm.Imm32(4))
		g.Add(maxP, asm.Imm32(4))
		g.Add(sumP, asm.Imm32(4))
	})
}

// rowMax leaves the maximum of n elements in lane 0 of acc (with AVX2 it also uses acc+1). It
// overwrites x and t.
func (g gen) rowMax(row, n asm.Reg, acc, x, t int) {
	for h := range g.Parts {
		g.SetF(g.V(acc+h), negInf)
	}
	g.OverGroups(n, func(h int, tail bool) {
		g.LoadGroup(g.V(x), g.Elem(row, h), h, tail)
		a := g.V(acc + h)
		switch {
		case !tail:
			g.I(asm.VMAXPS, a, g.V(x), a)
		case g.Wide:
			g.I(asm.VMAXPS, a.K(tailMask), g.V(x), a)
		default:
			g.I(asm.VMAXPS, g.V(x), g.V(x), a)
			g.LoadMask(g.V(t), h)
			g.I(asm.VBLENDVPS, a, a, g.V(x), g.V(t))
		}
	})
	g.MaxLanes(acc, t)
}

// addLanes adds p to part h of the accumulator, in the partial group only the lanes before the
// end.
func (g gen) addLanes(acc, p, t, h int, tail bool) {
	a := g.V(acc + h)
	switch {
	case !tail:
		g.I(asm.VADDPS, a, a, g.V(p))
	case g.Wide:
		g.I(asm.VADDPS, a.K(tailMask), a, g.V(p))
	default:
		g.LoadMask(g.V(t), h)
		g.I(asm.VANDPS, g.V(p), g.V(p), g.V(t))
		g.I(asm.VADDPS, a, a, g.V(p))
	}
}

// emitMerge: P o, m, s, ob, mb, sb; N oStride, obStride, rows, headDim.
func emitMerge(g gen) {
	const top, pair, p, n, z, s, t, a, b, x, zero = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
	r := lanes.ExpRange{Lo: 11, Hi: -1}
	o, m, sum, ob, mb, sb := p0, p1, p2, asm.R13, asm.R14, asm.R15
	g.pointers(o, m, sum, ob, mb, sb)
	g.Mov(rows, argN(2))
	g.Mov(n0, argN(3))
	g.Zero(zero)
	g.SetExpRange(r)
	g.OverRows(rows, func() {
		first, next := g.NewLabel(), g.NewLabel()
		g.CmpNegInf(asm.At(mb, 0), tmp)
		g.Jcc(asm.Zero, next)
		g.I(asm.VMOVSS, asm.X(b), asm.At(mb, 0))
		g.I(asm.VMOVSS, asm.X(s), asm.At(sb, 0))
		g.CmpNegInf(asm.At(m, 0), tmp)
		g.Jcc(asm.Zero, first)

		g.I(asm.VMOVSS, asm.X(a), asm.At(m, 0))
		g.I(asm.VMAXSS, asm.X(top), asm.X(b), asm.X(a))
		g.I(asm.VMOVSS, asm.At(m, 0), asm.X(top))
		g.I(asm.VSUBSS, asm.X(a), asm.X(a), asm.X(top))
		g.I(asm.VSUBSS, asm.X(b), asm.X(b), asm.X(top))
		g.I(asm.VUNPCKLPS, asm.X(pair), asm.X(a), asm.X(b))
		g.ExpAt(asm.X(p), asm.X(p), asm.X(pair), asm.X(n), asm.X(z), asm.X(r.Lo), nil)
		g.I(asm.VBROADCASTSS, g.V(a), asm.X(p))
		g.I(asm.VMOVSHDUP, asm.X(p), asm.X(p))
		g.I(asm.VBROADCASTSS, g.V(b), asm.X(p))
		g.I(asm.VMULSS, asm.X(t), asm.X(s), asm.X(b))
		g.I(asm.VMOVSS, asm.X(s), asm.At(sum, 0))
		g.I(asm.VFMADD213SS, asm.X(s), asm.X(a), asm.X(t))
		g.I(asm.VMOVSS, asm.At(sum, 0), asm.X(s))
		g.OverGroups(n0, func(h int, tail bool) {
			g.LoadGroup(g.V(t), g.Elem(ob, h), h, tail)
			g.LoadGroup(g.V(x), g.Elem(o, h), h, tail)
			g.I(asm.VADDPS, g.V(t), g.V(t), g.V(zero))
			g.I(asm.VMULPS, g.V(t), g.V(t), g.V(b))
			g.I(asm.VFMADD213PS, g.V(x), g.V(a), g.V(t))
			g.StoreGroup(g.Elem(o, h), g.V(x), h, tail)
		})
		g.Jmp(next)

		g.Bind(first)
		g.I(asm.VMOVSS, asm.At(m, 0), asm.X(b))
		g.I(asm.VMOVSS, asm.At(sum, 0), asm.X(s))
		g.OverGroups(n0, func(h int, tail bool) {
			g.LoadGroup(g.V(t), g.Elem(ob, h), h, tail)
			g.I(asm.VADDPS, g.V(t), g.V(t), g.V(zero))
			g.StoreGroup(g.Elem(o, h), g.V(t), h, tail)
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
func emitFinish(g gen) {
	const inv, x = 0, 1
	g.pointers(p0, p1, p2)
	g.Mov(rows, argN(2))
	g.Mov(n0, argN(3))
	g.OverRows(rows, func() {
		g.I(asm.VMOVSS, asm.X(inv), g.ConstF32(1))
		g.I(asm.VDIVSS, asm.X(inv), asm.X(inv), asm.At(p2, 0))
		g.I(asm.VBROADCASTSS, g.V(inv), asm.X(inv))
		g.OverGroups(n0, func(h int, tail bool) {
			g.LoadGroup(g.V(x), g.Elem(p1, h), h, tail)
			g.I(asm.VMULPS, g.V(x), g.V(x), g.V(inv))
			g.StoreGroup(g.Elem(p0, h), g.V(x), h, tail)
		})
		g.advance(p0, 0, tmp)
		g.advance(p1, 1, tmp)
		g.Add(p2, asm.Imm32(4))
	})
}
