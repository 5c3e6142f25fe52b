package vecgen

import a64 "sandwich/microkernel/internal/arm64/asm"

// neonConvSiLU: arguments as emitConvSiLU.
func neonConvSiLU(g neonGen) {
	one := a64.V(28)
	g.SplatF(one, 1)
	g.conv(func(tail bool) {
		g.op2(a64.FNEG, nX, nGate)
		g.exp(true, expOf(nP, nX, nN, nZ))
		g.opAll(a64.FADD, nP, nP, one)
		g.op3(a64.FDIV, nGate, nGate, nP)
	})
}

// neonConvGate: arguments as emitConvGate.
func neonConvGate(g neonGen) {
	g.conv(func(tail bool) {
		g.load(nX, nX2, tail)
		g.op3(a64.FMUL, nGate, nGate, nX)
	})
}

// conv is the loops of a convolution; act makes of the sum, in nGate, what is stored. Cursors are
// nC0 in dst, nC1 in x, nC2 in w and nX2 in the gate.
func (g neonGen) conv(act func(tail bool)) {
	tap, weight, taps := nX0, nX1, nX3
	bGate, xStep, wStep := nB3, nB4, nB5
	g.pointers(nB0, nB1, nB2, bGate)
	g.I(a64.LDRW, xStep, nArgs, a64.Imm(offR+4))
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
			g.op3(a64.FMUL, nGate, nGate, nX)
			g.MovX(tap, nC1)
			g.MovX(weight, nC2)
			g.I(a64.LDRW, taps, nArgs, a64.Imm(offR))
			g.I(a64.SUBSI, taps, taps, a64.Imm(1))
			done := g.NewLabel()
			g.CBZ(taps, done)
			g.Loop(taps, func() {
				g.I(a64.ADD, tap, tap, xStep)
				g.I(a64.ADD, weight, weight, wStep)
				g.load(nX, tap, tail)
				g.load(nN, weight, tail)
				g.op3(a64.FMLA, nGate, nX, nN)
			})
			g.Bind(done)
			act(tail)
			g.store(nGate, nC0, tail)
		})
		g.argN(nT0, 0)
		g.I(a64.ADD, nB0, nB0, nT0)
		g.argN(nT0, 1)
		g.I(a64.ADD, nB1, nB1, nT0)
		g.argN(nT0, 5)
		g.I(a64.ADD, bGate, bGate, nT0)
	})
}

// neonMul: arguments as emitMul.
func neonMul(g neonGen) {
	const x, y = block(0), block(1)
	g.pointers(nB0, nB1)
	g.argN(nRows, 2)
	g.argN(nLen, 3)
	g.overRows(nRows, func() {
		g.overRow([]a64.X{nC0, nC1}, func(tail bool) {
			g.load(x, nC0, tail)
			g.load(y, nC1, tail)
			g.op3(a64.FMUL, x, x, y)
			g.store(x, nC0, tail)
		})
		g.nextRows(0, 1)
	})
}

// neonL2Norm: arguments as emitL2Norm.
func neonL2Norm(g neonGen) {
	const acc, x = block(0), block(1)
	by, scale, eps := a64.V(28), a64.V(24), a64.V(25)
	g.pointers(nB0)
	g.argN(nRows, 1)
	g.argN(nLen, 2)
	g.argF(scale, 0)
	g.argF(eps, 1)
	g.overRows(nRows, func() {
		g.zero(acc)
		g.overRow([]a64.X{nC0}, func(tail bool) {
			g.load(x, nC0, tail)
			g.op3(a64.FMLA, acc, x, x)
		})
		g.sumLanes(acc)
		g.I(a64.FSQRT, acc.v(0), acc.v(0))
		g.Move(by, eps)
		g.max(by, acc.v(0), nConst)
		g.I(a64.FDIV, by, scale, by)
		g.overRow([]a64.X{nC0}, func(tail bool) {
			g.load(x, nC0, tail)
			g.opAll(a64.FMUL, x, x, by)
			g.store(x, nC0, tail)
		})
		g.nextRows(0)
	})
}

// Registers of the delta rule: pointers into the rows at hand, and blocks of sixteen columns.
const (
	nDeltaQ    = nB1
	nDeltaK    = nB2
	nDeltaV    = nB3
	nDeltaOut  = nB4
	nDeltaGate = nB5
	nDeltaBeta = nX0
	nDeltaNext = nX1
	nDeltaCols = nX2
	nDeltaDim  = nX3

	nDeltaX    = block(0)
	nDeltaO    = block(1)
	nDeltaHeld = block(2)
	nDeltaRow  = block(3)
	nDeltaOddO = block(4) // the sums of odd rows of the state
	nDeltaOdd  = block(5)

	nDeltaD    = a64.V(24)
	nDeltaKey  = a64.V(25)
	nDeltaAsk  = a64.V(26)
	nDeltaThen = a64.V(27)
)

// neonDelta: arguments as emitDelta. Panels follow one another.
func neonDelta(g neonGen) {
	next, partial, done := g.NewLabel(), g.NewLabel(), g.NewLabel()
	g.argN(nDeltaDim, 0)
	g.Bind(next)
	g.argN(nDeltaCols, 5)
	g.CBZ(nDeltaCols, done)
	g.Cmp(nDeltaCols, group)
	g.BC(a64.Less, partial)
	g.deltaRows(false)
	g.argP(nB0, 0)
	g.I(a64.ADDL, nB0, nB0, nDeltaDim, a64.Imm(6))
	g.I(a64.STRX, nB0, nArgs, a64.Imm(offP))
	for _, p := range []int{3, 4} {
		g.argP(nT0, p)
		g.AddImm(nT0, nT0, 4*group)
		g.I(a64.STRX, nT0, nArgs, a64.Imm(offP+8*p))
	}
	g.AddImm(nDeltaCols, nDeltaCols, -group)
	g.I(a64.STRX, nDeltaCols, nArgs, a64.Imm(offN+8*5))
	g.B(next)
	g.Bind(partial)
	g.MovX(nLeft, nDeltaCols)
	g.deltaRows(true)
	g.Bind(done)
}

// deltaRows is all rows for the columns of a panel.
func (g neonGen) deltaRows(tail bool) {
	g.pointers(nB0, nDeltaQ, nDeltaK, nDeltaV, nDeltaOut, nDeltaGate)
	g.argP(nDeltaBeta, 6)
	g.argN(nRows, 1)
	g.zero(nDeltaHeld)
	g.zero(nDeltaOdd)
	g.MovX(nC1, nDeltaK)
	g.overDelta(func(odd bool) {
		g.I(a64.LD1RP, nDeltaKey, nC1)
		g.opAll(a64.FMLA, pick(odd, nDeltaHeld, nDeltaOdd), nDeltaRow, nDeltaKey)
	})
	g.op3(a64.FADD, nDeltaHeld, nDeltaHeld, nDeltaOdd)
	g.overRows(nRows, func() { g.deltaRow(tail) })
}

// deltaRow is one position.
func (g neonGen) deltaRow(tail bool) {
	g.I(a64.LD1R, nDeltaD, nDeltaGate)
	g.I(a64.LD1R, nDeltaKey, nDeltaBeta)
	g.load(nDeltaX, nDeltaV, tail)
	g.opAll(a64.FMLS, nDeltaX, nDeltaHeld, nDeltaD)
	g.opAll(a64.FMUL, nDeltaX, nDeltaX, nDeltaKey)
	for _, sum := range []block{nDeltaHeld, nDeltaOdd, nDeltaO, nDeltaOddO} {
		g.zero(sum)
	}
	last := g.NewLabel()
	g.MovX(nDeltaNext, nDeltaK)
	g.Cmp(nRows, 1)
	g.BC(a64.Equal, last)
	g.nextRow(nDeltaNext, 2)
	g.Bind(last)
	g.MovX(nC0, nDeltaQ)
	g.MovX(nC1, nDeltaK)
	g.MovX(nC2, nDeltaNext)
	g.overDelta(func(odd bool) {
		g.I(a64.LD1RP, nDeltaAsk, nC0)
		g.I(a64.LD1RP, nDeltaKey, nC1)
		g.I(a64.LD1RP, nDeltaThen, nC2)
		g.opAll(a64.FMUL, nDeltaRow, nDeltaRow, nDeltaD)
		g.opAll(a64.FMLA, nDeltaRow, nDeltaX, nDeltaKey)
		g.store(nDeltaRow, nT1, false)
		g.opAll(a64.FMLA, pick(odd, nDeltaO, nDeltaOddO), nDeltaRow, nDeltaAsk)
		g.opAll(a64.FMLA, pick(odd, nDeltaHeld, nDeltaOdd), nDeltaRow, nDeltaThen)
	})
	g.op3(a64.FADD, nDeltaHeld, nDeltaHeld, nDeltaOdd)
	g.op3(a64.FADD, nDeltaO, nDeltaO, nDeltaOddO)
	g.store(nDeltaO, nDeltaOut, tail)
	g.MovX(nDeltaK, nDeltaNext)
	g.nextRow(nDeltaQ, 2)
	g.nextRow(nDeltaV, 2)
	g.nextRow(nDeltaOut, 3)
	g.nextRow(nDeltaGate, 4)
	g.nextRow(nDeltaBeta, 4)
}

// pick is the sum that a row of the state is added to.
func pick(isOdd bool, even, odd block) block {
	if isOdd {
		return odd
	}
	return even
}

// overDelta runs body for each row of the state, which is loaded, with nT1 pointing at it.
func (g neonGen) overDelta(body func(odd bool)) {
	row := func(odd bool) {
		g.load(nDeltaRow, nT1, false)
		body(odd)
		g.AddImm(nT1, nT1, 4*group)
	}
	one, done := g.NewLabel(), g.NewLabel()
	g.MovX(nT1, nB0)
	g.I(a64.LSRI, nT2, nDeltaDim, a64.Imm(1))
	g.CBZ(nT2, one)
	g.Loop(nT2, func() {
		row(false)
		row(true)
	})
	g.Bind(one)
	g.TBZ(nDeltaDim, 0, done)
	row(false)
	g.Bind(done)
}
