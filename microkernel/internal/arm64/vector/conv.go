package vector

import "sandwich/microkernel/internal/arm64/asm"

// emitConvSiLU emits the operation of the same name in amd64/vector.
func emitConvSiLU(g gen) {
	one := asm.V(28)
	g.SplatF(one, 1)
	g.conv(func(tail bool) {
		g.op2(asm.FNEG, nX, nGate)
		g.exp(true, expOf(nP, nX, nN, nZ))
		g.opAll(asm.FADD, nP, nP, one)
		g.op3(asm.FDIV, nGate, nGate, nP)
	})
}

// emitConvGate emits the operation of the same name in amd64/vector.
func emitConvGate(g gen) {
	g.conv(func(tail bool) {
		g.load(nX, nX2, tail)
		g.op3(asm.FMUL, nGate, nGate, nX)
	})
}

// conv emits the loops of a convolution; act computes the stored value from the sum in nGate.
// Cursors are nC0 in dst, nC1 in x, nC2 in w and nX2 in the gate.
func (g gen) conv(act func(tail bool)) {
	tap, weight, taps := nX0, nX1, nX3
	bGate, xStep, wStep := nB3, nB4, nB5
	g.pointers(nB0, nB1, nB2, bGate)
	g.I(asm.LDRW, xStep, nArgs, asm.Imm(offR+4))
	g.argN(wStep, 2)
	g.argN(nRows, 3)
	g.argN(nLen, 4)
	g.overRows(nRows, func() {
		g.MovX(nX2, bGate)
		g.MovX(nC0, nB0)
		g.MovX(nC1, nB1)
		g.MovX(nC2, nB2)
		g.groups(nLen, floats(nC0, nC1, nC2, nX2), func(tail bool) {
			g.load(nGate, nC1, tail)
			g.load(nX, nC2, tail)
			g.op3(asm.FMUL, nGate, nGate, nX)
			g.MovX(tap, nC1)
			g.MovX(weight, nC2)
			g.I(asm.LDRW, taps, nArgs, asm.Imm(offR))
			g.I(asm.SUBSI, taps, taps, asm.Imm(1))
			done := g.NewLabel()
			g.CBZ(taps, done)
			g.Loop(taps, func() {
				g.I(asm.ADD, tap, tap, xStep)
				g.I(asm.ADD, weight, weight, wStep)
				g.load(nX, tap, tail)
				g.load(nN, weight, tail)
				g.op3(asm.FMLA, nGate, nX, nN)
			})
			g.Bind(done)
			act(tail)
			g.store(nGate, nC0, tail)
		})
		g.argN(nT0, 0)
		g.I(asm.ADD, nB0, nB0, nT0)
		g.argN(nT0, 1)
		g.I(asm.ADD, nB1, nB1, nT0)
		g.argN(nT0, 5)
		g.I(asm.ADD, bGate, bGate, nT0)
	})
}
