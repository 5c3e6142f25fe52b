package vecgen

import a64 "sandwich/microkernel/internal/arm64/asm"

// neonRMSNorm: arguments as emitRMSNorm.
func neonRMSNorm(g neonGen) {
	const acc, x, w = block(0), block(1), block(2)
	scale, eps, n, one := a64.V(28), a64.V(24), a64.V(25), a64.V(26)
	g.pointers(nB0, nB1, nB2)
	g.argN(nRows, 2)
	g.argN(nLen, 3)
	g.argF(eps, 0)
	g.argF(n, 1)
	g.SplatF(one, 1)
	g.overRows(nRows, func() {
		g.zero(acc)
		g.overRow([]a64.X{nC1}, func(tail bool) {
			g.load(x, nC1, tail)
			g.op3(a64.FMLA, acc, x, x)
		})
		g.sumLanes(acc)
		s := acc.v(0)
		g.I(a64.FDIV, s, s, n)
		g.I(a64.FADD, s, s, eps)
		g.I(a64.FSQRT, s, s)
		g.I(a64.FDIV, scale, one, s)
		g.overRow([]a64.X{nC0, nC1, nC2}, func(tail bool) {
			g.load(x, nC1, tail)
			g.load(w, nC2, tail)
			g.opAll(a64.FMUL, x, x, scale)
			g.op3(a64.FMUL, x, x, w)
			g.store(x, nC0, tail)
		})
		g.nextRows(0, 1)
	})
}

// neonAdd: arguments as emitAdd.
func neonAdd(g neonGen) {
	const x, b = block(0), block(1)
	g.pointers(nB0, nB1)
	g.argN(nRows, 1)
	g.argN(nLen, 2)
	g.overRows(nRows, func() {
		g.overRow([]a64.X{nC0, nC1}, func(tail bool) {
			g.load(x, nC0, tail)
			g.load(b, nC1, tail)
			g.op3(a64.FADD, x, x, b)
			g.store(x, nC0, tail)
		})
		g.nextRows(0, 3)
	})
}

// neonPlus: arguments as emitPlus.
func neonPlus(g neonGen) {
	const x, y = block(0), block(1)
	g.pointers(nC0, nC1, nC2)
	g.argN(nLen, 0)
	g.groups(nLen, floats(nC0, nC1, nC2), func(tail bool) {
		g.load(x, nC1, tail)
		g.load(y, nC2, tail)
		g.op3(a64.FADD, x, x, y)
		g.store(x, nC0, tail)
	})
}

// neonAddScaled: arguments as emitAddScaled.
func neonAddScaled(g neonGen) {
	const d, x = block(0), block(1)
	s := a64.V(28)
	g.pointers(nC0, nC1)
	g.argN(nLen, 0)
	g.argF(s, 0)
	g.groups(nLen, floats(nC0, nC1), func(tail bool) {
		g.load(d, nC0, tail)
		g.load(x, nC1, tail)
		g.opAll(a64.FMLA, d, x, s)
		g.store(d, nC0, tail)
	})
}

// neonScale: arguments as emitScale.
func neonScale(g neonGen) {
	const d = block(0)
	s := a64.V(28)
	g.pointers(nC0)
	g.argN(nLen, 0)
	g.argF(s, 0)
	g.groups(nLen, floats(nC0), func(tail bool) {
		g.load(d, nC0, tail)
		g.opAll(a64.FMUL, d, d, s)
		g.store(d, nC0, tail)
	})
}

// neonRoPEHalves: arguments as emitRoPEHalves.
func neonRoPEHalves(g neonGen) {
	const c, s, a, b, t = block(0), block(1), block(2), block(3), block(4)
	head, upper, stride := nX0, nX1, nX2
	g.pointers(nB0, nC1, nC2)
	g.argN(nLen, 0)
	g.argN(stride, 2)
	g.groups(nLen, floats(nB0, nC1, nC2), func(tail bool) {
		g.load(c, nC1, tail)
		g.load(s, nC2, tail)
		g.MovX(head, nB0)
		g.argN(nRows, 1)
		g.overRows(nRows, func() {
			g.I(a64.ADDL, upper, head, nLen, a64.Imm(2))
			g.load(a, head, tail)
			g.load(b, upper, tail)
			g.op3(a64.FMUL, t, b, s)
			g.op2(a64.FNEG, t, t)
			g.op3(a64.FMLA, t, a, c)
			g.op3(a64.FMUL, b, b, c)
			g.op3(a64.FMLA, b, a, s)
			g.store(t, head, tail)
			g.store(b, upper, tail)
			g.I(a64.ADDL, head, head, stride, a64.Imm(2))
		})
	})
}

// neonRoPEPairs: arguments as emitRoPEPairs.
func neonRoPEPairs(g neonGen) {
	const x = block(0)
	c, s, a, b, t := a64.V(8), a64.V(10), a64.V(12), a64.V(13), a64.V(14)
	head, stride := nX0, nX2
	g.pointers(nB0, nC1, nC2)
	g.argN(nLen, 0)
	g.argN(stride, 2)
	g.groups(nLen, []cursor{{nB0, 4 * group}, {nC1, 2 * group}, {nC2, 2 * group}}, func(tail bool) {
		if tail {
			return // dim is a multiple of 16
		}
		g.I(a64.LDPQ, c, c+1, nC1, a64.Imm(0))
		g.I(a64.LDPQ, s, s+1, nC2, a64.Imm(0))
		g.MovX(head, nB0)
		g.argN(nRows, 1)
		g.overRows(nRows, func() {
			g.load(x, head, false)
			for i := range 2 {
				x0, x1, ci, si := x.v(2*i), x.v(2*i+1), c+a64.V(i), s+a64.V(i)
				g.I(a64.UZP1S, a, x0, x1)
				g.I(a64.UZP2S, b, x0, x1)
				g.I(a64.FMUL, t, b, si)
				g.I(a64.FNEG, t, t)
				g.I(a64.FMLA, t, a, ci)
				g.I(a64.FMUL, b, b, ci)
				g.I(a64.FMLA, b, a, si)
				g.I(a64.ZIP1S, x0, t, b)
				g.I(a64.ZIP2S, x1, t, b)
			}
			g.store(x, head, false)
			g.I(a64.ADDL, head, head, stride, a64.Imm(2))
		})
	})
}
