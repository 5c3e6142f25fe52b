package vector

import "sandwich/microkernel/internal/arm64/asm"

// emitRMSNorm emits the operation of the same name in amd64/vector.
func emitRMSNorm(g gen) {
	const acc, x, w = block(0), block(1), block(2)
	scale, norm := asm.V(28), normRegs{eps: 24, n: 25, one: 26}
	g.pointers(nB0, nB1, nB2)
	g.argN(nRows, 2)
	g.argN(nLen, 3)
	g.loadNorm(norm)
	g.overRows(nRows, func() {
		g.zero(acc)
		g.overRow([]asm.X{nC1}, func(tail bool) {
			g.load(x, nC1, tail)
			g.op3(asm.FMLA, acc, x, x)
		})
		g.sumLanes(acc)
		g.inverseDeviation(scale, acc.v(0), norm)
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

// normRegs holds the operands of inverseDeviation, each in all lanes.
type normRegs struct{ eps, n, one asm.V }

// loadNorm loads the arguments of a norm.
func (g gen) loadNorm(r normRegs) {
	g.argF(r.eps, 0)
	g.argF(r.n, 1)
	g.SplatF(r.one, 1)
}

// inverseDeviation sets to to 1/sqrt(sum/n + eps) of a sum of squares, which it overwrites.
func (g gen) inverseDeviation(to, sum asm.V, r normRegs) {
	g.I(asm.FDIV, sum, sum, r.n)
	g.I(asm.FADD, sum, sum, r.eps)
	g.I(asm.FSQRT, sum, sum)
	g.I(asm.FDIV, to, r.one, sum)
}

// emitLayerNorm emits the operation of the same name in amd64/vector.
func emitLayerNorm(g gen) {
	const acc, x, w, b = block(0), block(1), block(2), block(3)
	mean, norm := asm.V(28), normRegs{eps: 24, n: 25, one: 26}
	g.pointers(nB0, nB1, nB2, nB3)
	g.argN(nRows, 2)
	g.argN(nLen, 3)
	g.loadNorm(norm)
	s := acc.v(0)
	g.overRows(nRows, func() {
		g.zero(acc)
		g.overRow([]asm.X{nC1}, func(tail bool) {
			g.load(x, nC1, tail)
			g.op3(asm.FADD, acc, acc, x)
		})
		g.sumLanes(acc)
		g.I(asm.FDIV, mean, s, norm.n)
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
		g.inverseDeviation(mean, s, norm)
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
