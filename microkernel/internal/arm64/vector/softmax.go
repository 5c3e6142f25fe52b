package vector

import (
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/arm64/asm"
)

// emitSoftmax emits the operation of the same name in amd64/vector.
func emitSoftmax(g gen) {
	const acc, x, n, z, p = block(0), block(1), block(2), block(3), block(4)
	scale, top := asm.V(28), asm.V(29)
	row, valid, maxP, sumP, width, seen := nB0, nB1, nB2, nB3, nX0, nLen
	g.pointers(row, valid, maxP, sumP)
	g.argN(nRows, 1)
	g.argN(width, 2)
	g.argF(scale, 0)
	g.overRows(nRows, func() {
		g.I(asm.LDRSW, seen, valid, asm.Imm(0))
		g.MovX(nC0, row)
		g.rowMax(nC0, seen, acc, x)
		unseen := g.NewLabel()
		g.CBZ(seen, unseen)
		g.SplatF(top, arith.LowestScore)
		g.max(acc.v(0), top, nConst)
		g.Bind(unseen)
		g.I(asm.FMUL, top, acc.v(0), scale)
		g.I(asm.STRS, top, maxP, asm.Imm(0))
		g.zero(acc)
		g.MovX(nC0, row)
		g.groups(seen, floats(nC0), func(tail bool) {
			g.load(x, nC0, tail)
			g.opAll(asm.FMUL, x, x, scale)
			g.opAll(asm.FSUB, x, x, top)
			g.exp(false, expOf(p, x, n, z))
			g.store(p, nC0, tail)
			g.addLanes(acc, p, tail)
		})
		g.sumLanes(acc)
		g.I(asm.STRS, acc.v(0), sumP, asm.Imm(0))
		g.zeroRest(row, seen, width)
		g.nextRow(row, 0)
		for _, p := range []asm.X{valid, maxP, sumP} {
			g.AddImm(p, p, 4)
		}
	})
}

// zeroRest clears the elements of a row from number `from` to number `to`.
func (g gen) zeroRest(row, from, to asm.X) {
	done := g.NewLabel()
	g.I(asm.ADDL, nT0, row, from, asm.Imm(2))
	g.I(asm.SUBS, nT1, to, from)
	g.BC(asm.LessOrEqual, done)
	g.Loop(nT1, func() { g.I(asm.STRWP, asm.ZR, nT0, asm.Imm(4)) })
	g.Bind(done)
}

// rowMax leaves the maximum of n elements in all lanes of acc's first register. It advances the
// cursor and overwrites x.
func (g gen) rowMax(row, n asm.X, acc, x block) {
	each(func(i int) { g.Splat(acc.v(i), arith.NegInfBits) })
	g.groups(n, floats(row), func(tail bool) {
		g.loadOr(x, row, tail, arith.NegInfBits)
		each(func(i int) { g.max(acc.v(i), x.v(i), nConst) })
	})
	g.maxLanes(acc)
}

// addLanes adds p to the accumulator, in the partial group, which store has left in scratch, only
// the lanes before the end. It overwrites p.
func (g gen) addLanes(acc, p block, tail bool) {
	if tail {
		g.zero(p)
		g.partial(p)
	}
	g.op3(asm.FADD, acc, acc, p)
}

// partial replaces the lanes of b before the end of the partial group by the words in scratch.
func (g gen) partial(b block) {
	const old = block(5)
	g.I(asm.LDPQ, old.v(0), old.v(1), asm.SP, asm.Imm(0))
	g.I(asm.LDPQ, old.v(2), old.v(3), asm.SP, asm.Imm(32))
	g.I(asm.DUPW, nConst, nLeft)
	each(func(i int) {
		g.laneNumbers(nConst2, 4*i)
		g.I(asm.CMGT4S, nConst2, nConst, nConst2)
		g.I(asm.BIT, b.v(i), old.v(i), nConst2)
	})
}

// laneNumbers loads the integers from, from+1, from+2, from+3.
func (g gen) laneNumbers(v asm.V, from int) {
	var b [16]byte
	for i := range 4 {
		b[4*i] = byte(from + i)
	}
	g.ConstQ(v, b)
}

// emitMerge emits the operation of the same name in amd64/vector.
func emitMerge(g gen) {
	const t, x = block(0), block(1)
	a, b, zero, s, m, e1, e2 := asm.V(28), asm.V(29), asm.V(24), asm.V(25), asm.V(26), asm.V(20), asm.V(21)
	o, mP, sP, ob, mb, sb, negative := nB0, nB1, nB2, nB3, nB4, nB5, nX0
	g.pointers(o, mP, sP, ob, mb, sb)
	g.argN(nRows, 2)
	g.argN(nLen, 3)
	g.Zero(zero)
	g.MovImm(negative, arith.NegInfBits)
	g.overRows(nRows, func() {
		first, next := g.NewLabel(), g.NewLabel()
		g.I(asm.LDRW, nT0, mb, asm.Imm(0))
		g.CmpX(nT0, negative)
		g.BC(asm.Equal, next)
		g.I(asm.LDRS, b, mb, asm.Imm(0))
		g.I(asm.LDRS, s, sb, asm.Imm(0))
		g.MovX(nC0, o)
		g.MovX(nC1, ob)
		g.I(asm.LDRW, nT0, mP, asm.Imm(0))
		g.CmpX(nT0, negative)
		g.BC(asm.Equal, first)

		g.I(asm.LDRS, a, mP, asm.Imm(0))
		g.Move(m, a)
		g.max(m, b, nConst)
		g.I(asm.STRS, m, mP, asm.Imm(0))
		g.I(asm.FSUB, e1, a, m)
		g.I(asm.FSUB, e2, b, m)
		g.exp(false, []expRegs{{p: a, x: e1, n: 16, z: 17}, {p: b, x: e2, n: 18, z: 19}})
		g.I(asm.DUPS, a, a, asm.Imm(0))
		g.I(asm.DUPS, b, b, asm.Imm(0))
		g.I(asm.FMUL, s, s, b)
		g.I(asm.LDRS, m, sP, asm.Imm(0))
		g.I(asm.FMLA, s, m, a)
		g.I(asm.STRS, s, sP, asm.Imm(0))
		g.groups(nLen, floats(nC0, nC1), func(tail bool) {
			g.load(t, nC1, tail)
			g.load(x, nC0, tail)
			g.opAll(asm.FADD, t, t, zero)
			g.opAll(asm.FMUL, t, t, b)
			g.opAll(asm.FMLA, t, x, a)
			g.store(t, nC0, tail)
		})
		g.B(next)

		g.Bind(first)
		g.I(asm.STRS, b, mP, asm.Imm(0))
		g.I(asm.STRS, s, sP, asm.Imm(0))
		g.groups(nLen, floats(nC0, nC1), func(tail bool) {
			g.load(t, nC1, tail)
			g.opAll(asm.FADD, t, t, zero)
			g.store(t, nC0, tail)
		})
		g.Bind(next)
		g.nextRow(o, 0)
		g.nextRow(ob, 1)
		for _, p := range []asm.X{mP, sP, mb, sb} {
			g.AddImm(p, p, 4)
		}
	})
}

// emitFinish emits the operation of the same name in amd64/vector.
func emitFinish(g gen) {
	const x = block(0)
	inv, one := asm.V(28), asm.V(29)
	g.pointers(nB0, nB1, nB2)
	g.argN(nRows, 2)
	g.argN(nLen, 3)
	g.SplatF(one, 1)
	g.overRows(nRows, func() {
		g.MovX(nC0, nB0)
		g.MovX(nC1, nB1)
		g.I(asm.LD1R, inv, nB2)
		g.I(asm.FDIV, inv, one, inv)
		g.groups(nLen, floats(nC0, nC1), func(tail bool) {
			g.load(x, nC1, tail)
			g.opAll(asm.FMUL, x, x, inv)
			g.store(x, nC0, tail)
		})
		g.nextRow(nB0, 0)
		g.nextRow(nB1, 1)
		g.AddImm(nB2, nB2, 4)
	})
}
