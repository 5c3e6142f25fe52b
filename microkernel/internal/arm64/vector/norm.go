package vector

import "sandwich/microkernel/internal/arm64/asm"

// emitRMSNorm emits the operation of the same name in amd64/vector.
func emitRMSNorm(g gen) {
	const acc, x, w = block(0), block(1), block(2)
	scale, eps, n, one := asm.V(28), asm.V(24), asm.V(25), asm.V(26)
	g.pointers(nB0, nB1, nB2)
	g.argN(nRows, 2)
	g.argN(nLen, 3)
	g.argF(eps, 0)
	g.argF(n, 1)
	g.SplatF(one, 1)
	g.overRows(nRows, func() {
		g.zero(acc)
		g.overRow([]asm.X{nC1}, func(tail bool) {
			g.load(x, nC1, tail)
			g.op3(asm.FMLA, acc, x, x)
		})
		g.sumLanes(acc)
		s := acc.v(0)
		g.I(asm.FDIV, s, s, n)
		g.I(asm.FADD, s, s, eps)
		g.I(asm.FSQRT, s, s)
		g.I(asm.FDIV, scale, one, s)
		g.overRow([]asm.X{nC0, nC1, nC2}, func(tail bool) {
			g.load(x, nC1, tail)
			g.load(w, nC2, tail)
			g.opAll(asm.FMUL, x, x, scale)
			g.op3(asm.FMUL, x, x, w)
			g.store(x, nC0, tail)
		})
		g.nextRows(0, 1)
	})
}

// emitLayerNorm emits the operation of the same name in amd64/vector.
func emitLayerNorm(g gen) {
	const acc, x, w, b = block(0), block(1), block(2), block(3)
	mean, eps, n, one := asm.V(28), asm.V(24), asm.V(25), asm.V(26)
	g.pointers(nB0, nB1, nB2, nB3)
	g.argN(nRows, 2)
	g.argN(nLen, 3)
	g.argF(eps, 0)
	g.argF(n, 1)
	g.SplatF(one, 1)
	s := acc.v(0)
	g.overRows(nRows, func() {
		g.zero(acc)
		g.overRow([]asm.X{nC1}, func(tail bool) {
			g.load(x, nC1, tail)
			g.op3(asm.FADD, acc, acc, x)
		})
		g.sumLanes(acc)
		g.I(asm.FDIV, mean, s, n)
		g.zero(acc)
		g.overRow([]asm.X{nC0, nC1}, func(tail bool) {
			g.load(x, nC1, tail)
			g.opAll(asm.FSUB, x, x, mean)
			g.store(x, nC0, tail)
			if tail {
				g.load(x, nC0, tail)
			}
			g.op3(asm.FMLA, acc, x, x)
		})
		g.sumLanes(acc)
		g.I(asm.FDIV, s, s, n)
		g.I(asm.FADD, s, s, eps)
		g.I(asm.FSQRT, s, s)
		g.I(asm.FDIV, mean, one, s)
		g.MovX(nC0, nB0)
		g.MovX(nC1, nB2)
		g.MovX(nC2, nB3)
		g.groups(nLen, floats(nC0, nC1, nC2), func(tail bool) {
			g.load(x, nC0, tail)
			g.load(w, nC1, tail)
			g.load(b, nC2, tail)
			g.opAll(asm.FMUL, x, x, mean)
			g.op3(asm.FMLA, b, x, w)
			g.store(b, nC0, tail)
		})
		g.nextRows(0, 1)
	})
}

// emitL2Norm emits the operation of the same name in amd64/vector.
func emitL2Norm(g gen) {
	const acc, x = block(0), block(1)
	by, scale, eps := asm.V(28), asm.V(24), asm.V(25)
	g.pointers(nB0)
	g.argN(nRows, 1)
	g.argN(nLen, 2)
	g.argF(scale, 0)
	g.argF(eps, 1)
	g.overRows(nRows, func() {
		g.zero(acc)
		g.overRow([]asm.X{nC0}, func(tail bool) {
			g.load(x, nC0, tail)
			g.op3(asm.FMLA, acc, x, x)
		})
		g.sumLanes(acc)
		g.I(asm.FSQRT, acc.v(0), acc.v(0))
		g.Move(by, eps)
		g.max(by, acc.v(0), nConst)
		g.I(asm.FDIV, by, scale, by)
		g.overRow([]asm.X{nC0}, func(tail bool) {
			g.load(x, nC0, tail)
			g.opAll(asm.FMUL, x, x, by)
			g.store(x, nC0, tail)
		})
		g.nextRows(0)
	})
}
