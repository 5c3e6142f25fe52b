package vector

import (
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/arm64/asm"
)

// Blocks of a gated unit.
const (
	nGate = block(0)
	nX    = block(1)
	nN    = block(2)
	nZ    = block(3)
	nP    = block(4)
)

// emitSwiGLU emits the operation of the same name in amd64/vector.
func emitSwiGLU(g gen) {
	g.glu(func() { g.op2(asm.FNEG, nX, nGate) }, func(block) {})
}

// emitGeGLU emits the operation of the same name in amd64/vector.
func emitGeGLU(g gen) {
	g.glu(func() {
		g.op3(asm.FMUL, nX, nGate, nGate)
		g.SplatF(nConst, arith.GELUC1)
		each(func(i int) { g.Move(nN.v(i), nConst) })
		g.SplatF(nConst, arith.GELUC3)
		g.opAll(asm.FMLA, nN, nX, nConst)
		g.op3(asm.FMUL, nX, nN, nGate)
	}, func(block) {})
}

// emitClampedGLU emits the operation of the same name in amd64/vector.
func emitClampedGLU(g gen) {
	g.glu(func() {
		g.SplatF(nConst, arith.GLULimit)
		g.opAll(asm.FMIN, nGate, nGate, nConst)
		g.SplatF(nConst, arith.GLUSlope)
		g.opAll(asm.FMUL, nX, nGate, nConst)
	}, func(up block) {
		g.SplatF(nConst, arith.GLULimit)
		g.opAll(asm.FMIN, up, up, nConst)
		g.SplatF(nConst, -arith.GLULimit)
		g.opAll(asm.FMAX, up, up, nConst)
		g.SplatF(nConst, arith.GLULinear)
		g.opAll(asm.FADD, up, up, nConst)
	})
}

// emitSigmoidGLU emits the operation of the same name in amd64/vector.
func emitSigmoidGLU(g gen) {
	g.glu(func() {
		g.op2(asm.FNEG, nX, nGate)
		g.SplatF(nConst, 1)
		each(func(i int) { g.Move(nGate.v(i), nConst) })
	}, func(block) {})
}

// glu emits gate/(1+exp(x)) * up. prepare computes x and may change gate; linear may change up.
func (g gen) glu(prepare func(), linear func(up block)) {
	one := asm.V(28)
	g.pointers(nB0, nB1, nB2)
	g.argN(nRows, 3)
	g.argN(nLen, 4)
	g.SplatF(one, 1)
	g.overRows(nRows, func() {
		g.overRow([]asm.X{nC0, nC1, nC2}, func(tail bool) {
			g.load(nGate, nC1, tail)
			prepare()
			g.exp(true, expOf(nP, nX, nN, nZ))
			g.opAll(asm.FADD, nP, nP, one)
			g.op3(asm.FDIV, nP, nGate, nP)
			g.load(nX, nC2, tail)
			linear(nX)
			g.op3(asm.FMUL, nP, nP, nX)
			g.store(nP, nC0, tail)
		})
		g.nextRows(0, 1, 2)
	})
}

// capRegs holds the constants of a soft cap, each in all lanes.
type capRegs struct{ factor, cap, twice, one asm.V }

// softCap caps block nX. It overwrites nN, nZ and nP.
func (g gen) softCap(c capRegs) {
	g.opAll(asm.FMUL, nX, nX, c.factor)
	g.exp(true, expOf(nP, nX, nN, nZ))
	g.opAll(asm.FADD, nP, nP, c.one)
	each(func(i int) {
		g.I(asm.FDIV, nP.v(i), c.twice, nP.v(i))
		g.I(asm.FSUB, nX.v(i), c.cap, nP.v(i))
	})
}

// emitSoftCap emits the operation of the same name in amd64/vector.
func emitSoftCap(g gen) {
	c := capRegs{factor: 24, cap: 25, twice: 26, one: 28}
	g.pointers(nC0)
	g.argN(nLen, 0)
	g.argF(c.factor, 0)
	g.argF(c.cap, 1)
	g.I(asm.FADD, c.twice, c.cap, c.cap)
	g.SplatF(c.one, 1)
	g.groups(nLen, floats(nC0), func(tail bool) {
		g.load(nX, nC0, tail)
		g.softCap(c)
		g.store(nX, nC0, tail)
	})
}
