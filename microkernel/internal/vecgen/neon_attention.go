package vecgen

import a64 "sandwich/microkernel/internal/arm64/asm"

// neonSoftmax: arguments as emitSoftmax.
func neonSoftmax(g neonGen) {
	const acc, x, n, z, p = block(0), block(1), block(2), block(3), block(4)
	scale, top := a64.V(28), a64.V(29)
	row, valid, maxP, sumP, width, seen := nB0, nB1, nB2, nB3, nX0, nLen
	g.pointers(row, valid, maxP, sumP)
	g.argN(nRows, 1)
	g.argN(width, 2)
	g.argF(scale, 0)
	g.overRows(nRows, func() {
		g.I(a64.LDRSW, seen, valid, a64.Imm(0))
		g.MovX(nC0, row)
		g.rowMax(nC0, seen, acc, x)
		unseen := g.NewLabel()
		g.CBZ(seen, unseen)
		g.SplatF(top, lowest)
		g.max(acc.v(0), top, nConst)
		g.Bind(unseen)
		g.I(a64.FMUL, top, acc.v(0), scale)
		g.I(a64.STRS, top, maxP, a64.Imm(0))
		g.zero(acc)
		g.MovX(nC0, row)
		g.groups(seen, floats(nC0), func(tail bool) {
			g.load(x, nC0, tail)
			g.opAll(a64.FMUL, x, x, scale)
			g.opAll(a64.FSUB, x, x, top)
			g.exp(false, expOf(p, x, n, z))
			g.store(p, nC0, tail)
			g.addLanes(acc, p, tail)
		})
		g.sumLanes(acc)
		g.I(a64.STRS, acc.v(0), sumP, a64.Imm(0))
		g.zeroRest(row, seen, width)
		g.nextRow(row, 0)
		for _, p := range []a64.X{valid, maxP, sumP} {
			g.AddImm(p, p, 4)
		}
	})
}

// zeroRest clears the elements of a row from number `from` to number `to`.
func (g neonGen) zeroRest(row, from, to a64.X) {
	done := g.NewLabel()
	g.I(a64.ADDL, nT0, row, from, a64.Imm(2))
	g.I(a64.SUBS, nT1, to, from)
	g.BC(a64.LessOrEqual, done)
	g.Loop(nT1, func() { g.I(a64.STRWP, a64.ZR, nT0, a64.Imm(4)) })
	g.Bind(done)
}

// rowMax leaves the maximum of n elements in all lanes of acc's first register. The cursor moves; x
// is clobbered.
func (g neonGen) rowMax(row, n a64.X, acc, x block) {
	each(func(i int) { g.Splat(acc.v(i), negInfBits) })
	g.groups(n, floats(row), func(tail bool) {
		g.loadOr(x, row, tail, negInfBits)
		each(func(i int) { g.max(acc.v(i), x.v(i), nConst) })
	})
	g.maxLanes(acc)
}

// addLanes adds p to the accumulator. Of the partial group, which store has just left in scratch,
// only the lanes before the end are added; p is clobbered.
func (g neonGen) addLanes(acc, p block, tail bool) {
	if tail {
		g.zero(p)
		g.partial(p)
	}
	g.op3(a64.FADD, acc, acc, p)
}

// partial replaces the lanes of b before the end of the partial group by the words in scratch. The
// others keep theirs.
func (g neonGen) partial(b block) {
	const old = block(5)
	g.I(a64.LDPQ, old.v(0), old.v(1), a64.SP, a64.Imm(0))
	g.I(a64.LDPQ, old.v(2), old.v(3), a64.SP, a64.Imm(32))
	g.I(a64.DUPW, nConst, nLeft)
	each(func(i int) {
		g.laneNumbers(nConst2, 4*i)
		g.I(a64.CMGT4S, nConst2, nConst, nConst2)
		g.I(a64.BIT, b.v(i), old.v(i), nConst2)
	})
}

// laneNumbers loads from, from+1, from+2, from+3.
func (g neonGen) laneNumbers(v a64.V, from int) {
	var b [16]byte
	for i := range 4 {
		b[4*i] = byte(from + i)
	}
	g.ConstQ(v, b)
}

// neonMerge: arguments as emitMerge.
func neonMerge(g neonGen) {
	const t, x = block(0), block(1)
	a, b, zero, s, m, e1, e2 := a64.V(28), a64.V(29), a64.V(24), a64.V(25), a64.V(26), a64.V(20), a64.V(21)
	o, mP, sP, ob, mb, sb, negative := nB0, nB1, nB2, nB3, nB4, nB5, nX0
	g.pointers(o, mP, sP, ob, mb, sb)
	g.argN(nRows, 2)
	g.argN(nLen, 3)
	g.Zero(zero)
	g.MovImm(negative, negInfBits)
	g.overRows(nRows, func() {
		first, next := g.NewLabel(), g.NewLabel()
		g.I(a64.LDRW, nT0, mb, a64.Imm(0))
		g.CmpX(nT0, negative)
		g.BC(a64.Equal, next)
		g.I(a64.LDRS, b, mb, a64.Imm(0))
		g.I(a64.LDRS, s, sb, a64.Imm(0))
		g.MovX(nC0, o)
		g.MovX(nC1, ob)
		g.I(a64.LDRW, nT0, mP, a64.Imm(0))
		g.CmpX(nT0, negative)
		g.BC(a64.Equal, first)

		g.I(a64.LDRS, a, mP, a64.Imm(0))
		g.Move(m, a)
		g.max(m, b, nConst)
		g.I(a64.STRS, m, mP, a64.Imm(0))
		g.I(a64.FSUB, e1, a, m)
		g.I(a64.FSUB, e2, b, m)
		g.exp(false, []neonExp{{p: a, x: e1, n: 16, z: 17}, {p: b, x: e2, n: 18, z: 19}})
		g.I(a64.DUPS, a, a, a64.Imm(0))
		g.I(a64.DUPS, b, b, a64.Imm(0))
		g.I(a64.FMUL, s, s, b)
		g.I(a64.LDRS, m, sP, a64.Imm(0))
		g.I(a64.FMLA, s, m, a)
		g.I(a64.STRS, s, sP, a64.Imm(0))
		g.groups(nLen, floats(nC0, nC1), func(tail bool) {
			g.load(t, nC1, tail)
			g.load(x, nC0, tail)
			g.opAll(a64.FADD, t, t, zero)
			g.opAll(a64.FMUL, t, t, b)
			g.opAll(a64.FMLA, t, x, a)
			g.store(t, nC0, tail)
		})
		g.B(next)

		g.Bind(first)
		g.I(a64.STRS, b, mP, a64.Imm(0))
		g.I(a64.STRS, s, sP, a64.Imm(0))
		g.groups(nLen, floats(nC0, nC1), func(tail bool) {
			g.load(t, nC1, tail)
			g.opAll(a64.FADD, t, t, zero)
			g.store(t, nC0, tail)
		})
		g.Bind(next)
		g.nextRow(o, 0)
		g.nextRow(ob, 1)
		for _, p := range []a64.X{mP, sP, mb, sb} {
			g.AddImm(p, p, 4)
		}
	})
}

// neonFinish: arguments as emitFinish.
func neonFinish(g neonGen) {
	const x = block(0)
	inv, one := a64.V(28), a64.V(29)
	g.pointers(nB0, nB1, nB2)
	g.argN(nRows, 2)
	g.argN(nLen, 3)
	g.SplatF(one, 1)
	g.overRows(nRows, func() {
		g.MovX(nC0, nB0)
		g.MovX(nC1, nB1)
		g.I(a64.LD1R, inv, nB2)
		g.I(a64.FDIV, inv, one, inv)
		g.groups(nLen, floats(nC0, nC1), func(tail bool) {
			g.load(x, nC1, tail)
			g.opAll(a64.FMUL, x, x, inv)
			g.store(x, nC0, tail)
		})
		g.nextRow(nB0, 0)
		g.nextRow(nB1, 1)
		g.AddImm(nB2, nB2, 4)
	})
}
