package vecgen

import a64 "sandwich/microkernel/internal/arm64/asm"

// neonMax: arguments as emitMax.
func neonMax(g neonGen) {
	g.pointers(nC0)
	g.argN(nLen, 0)
	g.rowMax(nC0, nLen, 0, 1)
	g.I(a64.STRS, a64.V(0), nArgs, a64.Imm(offR))
}

// neonExpSum: arguments as emitExpSum.
func neonExpSum(g neonGen) {
	const acc, x, n, z, p = block(0), block(1), block(2), block(3), block(4)
	scale, top := a64.V(28), a64.V(29)
	g.pointers(nC0)
	g.argN(nLen, 0)
	g.argF(scale, 0)
	g.argF(top, 1)
	g.zero(acc)
	g.groups(nLen, floats(nC0), func(tail bool) {
		g.load(x, nC0, tail)
		g.opAll(a64.FMUL, x, x, scale)
		g.opAll(a64.FSUB, x, x, top)
		g.exp(true, expOf(p, x, n, z))
		if tail {
			g.toScratch(p.v(0), p.v(1), p.v(2), p.v(3))
		}
		g.addLanes(acc, p, tail)
	})
	g.sumLanes(acc)
	g.I(a64.STRS, acc.v(0), nArgs, a64.Imm(offR))
}

// anyLane branches to the label when a comparison of the sixteen elements at the cursor with the
// value is true somewhere.
func (g neonGen) anyLane(o *a64.Op, value a64.V, p a64.X, to a64.Label) {
	const x = block(0)
	g.load(x, p, false)
	g.opAll(o, x, x, value)
	g.I(a64.ORRV, x.v(0), x.v(0), x.v(1))
	g.I(a64.ORRV, x.v(2), x.v(2), x.v(3))
	g.I(a64.ORRV, x.v(0), x.v(0), x.v(2))
	g.I(a64.UMAXVS, x.v(0), x.v(0))
	g.I(a64.UMOVW, nT0, x.v(0), a64.Imm(0))
	g.CBNZ(nT0, to)
}

// oneLane is anyLane for the one element at the cursor, which moves on.
func (g neonGen) oneLane(o *a64.Op, value a64.V, p a64.X, to a64.Label) {
	x := a64.V(0)
	g.I(a64.LDRSP, x, p, a64.Imm(4))
	g.I(o, x, x, value)
	g.I(a64.UMOVW, nT0, x, a64.Imm(0))
	g.CBNZ(nT0, to)
}

// neonFindEqual: arguments as emitFindEqual.
func neonFindEqual(g neonGen) {
	value, index := a64.V(28), nX0
	rest, single, out := g.NewLabel(), g.NewLabel(), g.NewLabel()
	g.pointers(nC0)
	g.argN(nLen, 0)
	g.argF(value, 0)
	g.MovX(index, a64.ZR)
	g.I(a64.LSRI, nTurn, nLen, a64.Imm(4))
	g.CBZ(nTurn, rest)
	g.Loop(nTurn, func() {
		g.anyLane(a64.FCMEQ, value, nC0, rest)
		g.AddImm(nC0, nC0, 4*group)
		g.AddImm(index, index, group)
	})
	g.Bind(rest)
	g.Bind(single)
	g.CmpX(index, nLen)
	g.BC(a64.GreaterEqual, out)
	g.oneLane(a64.FCMEQ, value, nC0, out)
	g.AddImm(index, index, 1)
	g.B(single)
	g.Bind(out)
	g.I(a64.STRW, index, nArgs, a64.Imm(offR))
}

// neonSelect: arguments as emitSelect.
func neonSelect(g neonGen) {
	value, index, count, room, idx, end := a64.V(28), nX0, nX1, nX2, nB1, nX3
	g.pointers(nC0, idx)
	g.argN(nLen, 0)
	g.argN(room, 1)
	g.argF(value, 0)
	g.MovX(index, a64.ZR)
	g.MovX(count, a64.ZR)
	// some takes the elements one by one up to number end.
	some := func() {
		done, next, take := g.NewLabel(), g.NewLabel(), g.NewLabel()
		top := g.Here()
		g.CmpX(index, end)
		g.BC(a64.GreaterEqual, done)
		g.oneLane(a64.FCMGE, value, nC0, take)
		g.B(next)
		g.Bind(take)
		full := g.NewLabel()
		g.CmpX(count, room)
		g.BC(a64.GreaterEqual, full)
		g.I(a64.STRWX, index, idx, count)
		g.Bind(full)
		g.AddImm(count, count, 1)
		g.Bind(next)
		g.AddImm(index, index, 1)
		g.B(top)
		g.Bind(done)
	}
	rest := g.NewLabel()
	g.I(a64.LSRI, nTurn, nLen, a64.Imm(4))
	g.CBZ(nTurn, rest)
	g.Loop(nTurn, func() {
		hit, next := g.NewLabel(), g.NewLabel()
		g.anyLane(a64.FCMGE, value, nC0, hit)
		g.AddImm(nC0, nC0, 4*group)
		g.AddImm(index, index, group)
		g.B(next)
		g.Bind(hit)
		g.AddImm(end, index, group)
		some()
		g.Bind(next)
	})
	g.Bind(rest)
	g.MovX(end, nLen)
	some()
	g.I(a64.STRW, count, nArgs, a64.Imm(offR))
}
