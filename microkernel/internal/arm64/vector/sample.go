package vector

import (
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/arm64/asm"
)

// emitMax emits the operation of the same name in amd64/vector.
func emitMax(g gen) {
	g.pointers(nC0)
	g.argN(nLen, 0)
	g.rowMax(nC0, nLen, 0, 1)
	g.I(asm.STRS, asm.V(0), nArgs, asm.Imm(offR))
}

// emitExpSum emits the operation of the same name in amd64/vector.
func emitExpSum(g gen) {
	const acc, x, n, z, p = block(0), block(1), block(2), block(3), block(4)
	scale, top := asm.V(28), asm.V(29)
	g.pointers(nC0)
	g.argN(nLen, 0)
	g.argF(scale, 0)
	g.argF(top, 1)
	g.zero(acc)
	g.groups(nLen, floats(nC0), func(tail bool) {
		g.load(x, nC0, tail)
		g.opAll(asm.FMUL, x, x, scale)
		g.opAll(asm.FSUB, x, x, top)
		g.exp(true, expOf(p, x, n, z))
		if tail {
			g.toScratch(p.v(0), p.v(1), p.v(2), p.v(3))
		}
		g.addLanes(acc, p, tail)
	})
	g.sumLanes(acc)
	g.I(asm.STRS, acc.v(0), nArgs, asm.Imm(offR))
}

// anyLane branches to the label if a comparison of the sixteen elements at the cursor with the
// value is true for any of them.
func (g gen) anyLane(o *asm.Op, value asm.V, p asm.X, to asm.Label) {
	const x = block(0)
	g.load(x, p, false)
	g.opAll(o, x, x, value)
	g.I(asm.ORRV, x.v(0), x.v(0), x.v(1))
	g.I(asm.ORRV, x.v(2), x.v(2), x.v(3))
	g.I(asm.ORRV, x.v(0), x.v(0), x.v(2))
	g.I(asm.UMAXVS, x.v(0), x.v(0))
	g.I(asm.UMOVW, nT0, x.v(0), asm.Imm(0))
	g.CBNZ(nT0, to)
}

// oneLane is anyLane for the single element at the cursor, which it advances.
func (g gen) oneLane(o *asm.Op, value asm.V, p asm.X, to asm.Label) {
	x := asm.V(0)
	g.I(asm.LDRSP, x, p, asm.Imm(4))
	g.I(o, x, x, value)
	g.I(asm.UMOVW, nT0, x, asm.Imm(0))
	g.CBNZ(nT0, to)
}

// emitFindEqual emits the operation of the same name in amd64/vector.
func emitFindEqual(g gen) {
	value, index := asm.V(28), nX0
	rest, single, out := g.NewLabel(), g.NewLabel(), g.NewLabel()
	g.pointers(nC0)
	g.argN(nLen, 0)
	g.argF(value, 0)
	g.MovX(index, asm.ZR)
	g.I(asm.LSRI, nTurn, nLen, asm.Imm(4))
	g.CBZ(nTurn, rest)
	g.Loop(nTurn, func() {
		g.anyLane(asm.FCMEQ, value, nC0, rest)
		g.AddImm(nC0, nC0, 4*arith.Lanes)
		g.AddImm(index, index, arith.Lanes)
	})
	g.Bind(rest)
	g.Bind(single)
	g.CmpX(index, nLen)
	g.BC(asm.GreaterEqual, out)
	g.oneLane(asm.FCMEQ, value, nC0, out)
	g.AddImm(index, index, 1)
	g.B(single)
	g.Bind(out)
	g.I(asm.STRW, index, nArgs, asm.Imm(offR))
}

// emitSelect emits the operation of the same name in amd64/vector.
func emitSelect(g gen) {
	value, index, count, limit, idx, end := asm.V(28), nX0, nX1, nX2, nB1, nX3
	g.pointers(nC0, idx)
	g.argN(nLen, 0)
	g.argN(limit, 1)
	g.argF(value, 0)
	g.MovX(index, asm.ZR)
	g.MovX(count, asm.ZR)
	// some takes the elements one by one up to number end.
	some := func() {
		done, next, take := g.NewLabel(), g.NewLabel(), g.NewLabel()
		top := g.Here()
		g.CmpX(index, end)
		g.BC(asm.GreaterEqual, done)
		g.oneLane(asm.FCMGE, value, nC0, take)
		g.B(next)
		g.Bind(take)
		full := g.NewLabel()
		g.CmpX(count, limit)
		g.BC(asm.GreaterEqual, full)
		g.I(asm.STRWX, index, idx, count)
		g.Bind(full)
		g.AddImm(count, count, 1)
		g.Bind(next)
		g.AddImm(index, index, 1)
		g.B(top)
		g.Bind(done)
	}
	rest := g.NewLabel()
	g.I(asm.LSRI, nTurn, nLen, asm.Imm(4))
	g.CBZ(nTurn, rest)
	g.Loop(nTurn, func() {
		hit, next := g.NewLabel(), g.NewLabel()
		g.anyLane(asm.FCMGE, value, nC0, hit)
		g.AddImm(nC0, nC0, 4*arith.Lanes)
		g.AddImm(index, index, arith.Lanes)
		g.B(next)
		g.Bind(hit)
		g.AddImm(end, index, arith.Lanes)
		some()
		g.Bind(next)
	})
	g.Bind(rest)
	g.MovX(end, nLen)
	some()
	g.I(asm.STRW, count, nArgs, asm.Imm(offR))
}
