package vector

import (
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/arm64/asm"
)

// emitRoPEHalves emits the operation of the same name in amd64/vector.
func emitRoPEHalves(g gen) {
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
			g.I(asm.ADDL, upper, head, nLen, asm.Imm(2))
			g.load(a, head, tail)
			g.load(b, upper, tail)
			g.op3(asm.FMUL, t, b, s)
			g.op2(asm.FNEG, t, t)
			g.op3(asm.FMLA, t, a, c)
			g.op3(asm.FMUL, b, b, c)
			g.op3(asm.FMLA, b, a, s)
			g.store(t, head, tail)
			g.store(b, upper, tail)
			g.I(asm.ADDL, head, head, stride, asm.Imm(2))
		})
	})
}

// emitRoPEPairs emits the operation of the same name in amd64/vector.
func emitRoPEPairs(g gen) {
	const x = block(0)
	c, s, a, b, t := asm.V(8), asm.V(10), asm.V(12), asm.V(13), asm.V(14)
	head, stride := nX0, nX2
	g.pointers(nB0, nC1, nC2)
	g.argN(nLen, 0)
	g.argN(stride, 2)
	g.groups(nLen, []cursor{{nB0, 4 * arith.Lanes}, {nC1, 2 * arith.Lanes}, {nC2, 2 * arith.Lanes}}, func(tail bool) {
		if tail {
			return // dim is a multiple of 16
		}
		g.I(asm.LDPQ, c, c+1, nC1, asm.Imm(0))
		g.I(asm.LDPQ, s, s+1, nC2, asm.Imm(0))
		g.MovX(head, nB0)
		g.argN(nRows, 1)
		g.overRows(nRows, func() {
			g.load(x, head, false)
			for i := range 2 {
				x0, x1, ci, si := x.v(2*i), x.v(2*i+1), c+asm.V(i), s+asm.V(i)
				g.I(asm.UZP1S, a, x0, x1)
				g.I(asm.UZP2S, b, x0, x1)
				g.I(asm.FMUL, t, b, si)
				g.I(asm.FNEG, t, t)
				g.I(asm.FMLA, t, a, ci)
				g.I(asm.FMUL, b, b, ci)
				g.I(asm.FMLA, b, a, si)
				g.I(asm.ZIP1S, x0, t, b)
				g.I(asm.ZIP2S, x1, t, b)
			}
			g.store(x, head, false)
			g.I(asm.ADDL, head, head, stride, asm.Imm(2))
		})
	})
}
