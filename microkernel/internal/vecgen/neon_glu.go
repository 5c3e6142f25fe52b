package vecgen

import a64 "sandwich/microkernel/internal/arm64/asm"

// Blocks of a gated unit.
const (
	nGate = block(0)
	nX    = block(1)
	nN    = block(2)
	nZ    = block(3)
	nP    = block(4)
)

// neonSwiGLU: arguments as emitSwiGLU.
func neonSwiGLU(g neonGen) {
	g.glu(func() { g.op2(a64.FNEG, nX, nGate) }, func(block) {})
}

// neonGeGLU: arguments as emitSwiGLU.
func neonGeGLU(g neonGen) {
	g.glu(func() {
		g.op3(a64.FMUL, nX, nGate, nGate)
		g.SplatF(nConst, geluC1)
		each(func(i int) { g.Move(nN.v(i), nConst) })
		g.SplatF(nConst, geluC3)
		g.opAll(a64.FMLA, nN, nX, nConst)
		g.op3(a64.FMUL, nX, nN, nGate)
	}, func(block) {})
}

// neonClampedGLU: arguments as emitSwiGLU.
func neonClampedGLU(g neonGen) {
	g.glu(func() {
		g.SplatF(nConst, gluLimit)
		g.opAll(a64.FMIN, nGate, nGate, nConst)
		g.SplatF(nConst, gluSlope)
		g.opAll(a64.FMUL, nX, nGate, nConst)
	}, func(up block) {
		g.SplatF(nConst, gluLimit)
		g.opAll(a64.FMIN, up, up, nConst)
		g.SplatF(nConst, -gluLimit)
		g.opAll(a64.FMAX, up, up, nConst)
		g.SplatF(nConst, gluLinear)
		g.opAll(a64.FADD, up, up, nConst)
	})
}

// neonSigmoidGLU: arguments as emitSwiGLU.
func neonSigmoidGLU(g neonGen) {
	g.glu(func() {
		g.op2(a64.FNEG, nX, nGate)
		g.SplatF(nConst, 1)
		each(func(i int) { g.Move(nGate.v(i), nConst) })
	}, func(block) {})
}

// glu is gate/(1+exp(x)) * up, where prepare makes x and may change gate, and linear may change up.
func (g neonGen) glu(prepare func(), linear func(up block)) {
	one := a64.V(28)
	g.pointers(nB0, nB1, nB2)
	g.argN(nRows, 3)
	g.argN(nLen, 4)
	g.SplatF(one, 1)
	g.overRows(nRows, func() {
		g.overRow([]a64.X{nC0, nC1, nC2}, func(tail bool) {
			g.load(nGate, nC1, tail)
			prepare()
			g.exp(true, expOf(nP, nX, nN, nZ))
			g.opAll(a64.FADD, nP, nP, one)
			g.op3(a64.FDIV, nP, nGate, nP)
			g.load(nX, nC2, tail)
			linear(nX)
			g.op3(a64.FMUL, nP, nP, nX)
			g.store(nP, nC0, tail)
		})
		g.nextRows(0, 1, 2)
	})
}

// neonCap holds the constants of a soft cap, each in all lanes.
type neonCap struct{ factor, cap, twice, one a64.V }

// softCap caps block nX, by way of nN, nZ and nP.
func (g neonGen) softCap(c neonCap) {
	g.opAll(a64.FMUL, nX, nX, c.factor)
	g.exp(true, expOf(nP, nX, nN, nZ))
	g.opAll(a64.FADD, nP, nP, c.one)
	each(func(i int) {
		g.I(a64.FDIV, nP.v(i), c.twice, nP.v(i))
		g.I(a64.FSUB, nX.v(i), c.cap, nP.v(i))
	})
}

// neonSoftCap: arguments as emitSoftCap.
func neonSoftCap(g neonGen) {
	c := neonCap{factor: 24, cap: 25, twice: 26, one: 28}
	g.pointers(nC0)
	g.argN(nLen, 0)
	g.argF(c.factor, 0)
	g.argF(c.cap, 1)
	g.I(a64.FADD, c.twice, c.cap, c.cap)
	g.SplatF(c.one, 1)
	g.groups(nLen, floats(nC0), func(tail bool) {
		g.load(nX, nC0, tail)
		g.softCap(c)
		g.store(nX, nC0, tail)
	})
}
