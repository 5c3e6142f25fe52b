package vector

import (
	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/amd64/lanes"
)

// emitMax: P x; N n. R[0] receives the bits of the maximum.
func emitMax(g gen) {
	g.pointers(p0)
	g.Mov(n0, argN(0))
	g.rowMax(p0, n0, 0, 3, 2)
	g.I(asm.VMOVSS, argR(0), asm.X(0))
}

// emitExpSum: P x; N n; F scale, max*scale. R[0] receives the bits of the sum.
func emitExpSum(g gen) {
	const acc, t, x, p, n, z, scale, top = 0, 2, 3, 4, 5, 6, 7, 8
	r := lanes.ExpRange{Lo: 10, Hi: 11}
	g.pointers(p0)
	g.Mov(n0, argN(0))
	g.I(asm.VBROADCASTSS, g.V(scale), argF(0))
	g.I(asm.VBROADCASTSS, g.V(top), argF(1))
	g.SetExpRange(r)
	g.Zero(acc)
	g.Zero(acc + 1)
	g.OverGroups(n0, func(h int, tail bool) {
		g.LoadGroup(g.V(x), g.Elem(p0, h), h, tail)
		g.I(asm.VMULPS, g.V(x), g.V(x), g.V(scale))
		g.I(asm.VSUBPS, g.V(x), g.V(x), g.V(top))
		g.Exp(p, x, n, z, r)
		g.addLanes(acc, p, x, h, tail)
	})
	g.SumLanes(acc, t)
	g.I(asm.VMOVSS, argR(0), asm.X(acc))
}

// The two searches below process eight elements per step at both levels: memory limits them, and
// VMOVMSKPS needs no opmask. Comparison predicates: 0 is equal (ordered), 13 greater or equal
// (ordered, false for NaN).
const (
	cmpEqual   = 0
	cmpAtLeast = 13
)

// compareEight sets the bits of left to the lanes of the step at index that satisfy the predicate
// against Y0.
func (g gen) compareEight(predicate uint8) {
	g.I(asm.VMOVUPS, asm.Y(1), asm.AtIndex(p0, index, 4, 0))
	g.I(asm.VCMPPS, asm.Y(1), asm.Y(1), asm.Y(0), asm.Imm(predicate))
	g.I(asm.VMOVMSKPS, left, asm.Y(1))
	g.Test(left, left)
}

// compareOne is compareEight for one element, in bit 0 of left.
func (g gen) compareOne(predicate uint8) {
	g.I(asm.VMOVSS, asm.X(1), asm.AtIndex(p0, index, 4, 0))
	g.I(asm.VCMPPS, asm.X(1), asm.X(1), asm.X(0), asm.Imm(predicate))
	g.I(asm.VMOVMSKPS, left, asm.X(1))
	g.And(left, asm.Imm32(1))
}

// emitFindEqual: P x; N n; F value. R[0] receives the index of the first element equal to the
// value, or n.
func emitFindEqual(g gen) {
	out, first := g.NewLabel(), g.NewLabel()
	g.pointers(p0)
	g.Mov(n0, argN(0))
	g.I(asm.VBROADCASTSS, asm.Y(0), argF(0))
	hit := func(compare func(uint8)) func() {
		return func() {
			compare(cmpEqual)
			g.Jcc(asm.NotZero, first)
		}
	}
	g.OverEights(n0, hit(g.compareEight), hit(g.compareOne))
	g.Jmp(out)
	g.Bind(first)
	g.eachBit(func() { g.Jmp(out) })
	g.Bind(out)
	g.Store32(argR(0), index)
}

// eachBit runs body with index at each element whose bit is set in left, ascending. At the end,
// index is after the last of them.
func (g gen) eachBit(body func()) {
	loop, skip, done := g.NewLabel(), g.NewLabel(), g.NewLabel()
	g.Bind(loop)
	g.Test(left, left)
	g.Jcc(asm.Zero, done)
	g.Mov(tmp, left)
	g.And(tmp, asm.Imm32(1))
	g.Jcc(asm.Zero, skip)
	body()
	g.Bind(skip)
	g.Shr(left, 1)
	g.Add(index, asm.Imm32(1))
	g.Jmp(loop)
	g.Bind(done)
}

// emitSelect: P x, idx; N n, limit; F threshold. R[0] receives the number of elements at or above
// the threshold, of which the first `limit` are written.
func emitSelect(g gen) {
	limit, count, base := p2, asm.R13, asm.R14
	g.pointers(p0, p1)
	g.Mov(n0, argN(0))
	g.Mov(limit, argN(1))
	g.Xor(count, count)
	g.I(asm.VBROADCASTSS, asm.Y(0), argF(0))
	take := func(compare func(uint8)) func() {
		return func() {
			none := g.NewLabel()
			compare(cmpAtLeast)
			g.Jcc(asm.Zero, none)
			g.Mov(base, index)
			g.eachBit(func() {
				fullUp := g.NewLabel()
				g.Cmp(count, limit)
				g.Jcc(asm.GreaterEqual, fullUp)
				g.Store32(asm.AtIndex(p1, count, 4, 0), index)
				g.Bind(fullUp)
				g.Add(count, asm.Imm32(1))
			})
			g.Mov(index, base)
			g.Bind(none)
		}
	}
	g.OverEights(n0, take(g.compareEight), take(g.compareOne))
	g.Store32(argR(0), count)
}
