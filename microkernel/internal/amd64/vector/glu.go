package vector

import (
	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/amd64/lanes"
	"sandwich/microkernel/internal/arith"
)

// Registers of a gated unit: up and gate are its factors, x the argument of the exponential.
const (
	gluGate = 0
	gluUp   = 1
	gluP    = 2
	gluX    = 3
	gluN    = 4
	gluZ    = 5
)

// emitSwiGLU: P dst, gate, up; N dstStride, gateStride, upStride, rows, n.
func emitSwiGLU(g gen) {
	g.glu(func() { g.I(asm.VXORPS, g.V(gluX), g.V(gluGate), g.Splat(1<<31)) })
}

// emitGeGLU takes the arguments of emitSwiGLU.
func emitGeGLU(g gen) {
	g.glu(func() {
		x := g.V(gluX)
		g.I(asm.VMULPS, x, g.V(gluGate), g.V(gluGate))
		g.SetF(g.V(gluN), arith.GELUC3)
		g.I(asm.VFMADD213PS, x, g.V(gluN), g.SplatF(arith.GELUC1))
		g.I(asm.VMULPS, x, x, g.V(gluGate))
	})
}

// emitClampedGLU takes the arguments of emitSwiGLU.
func emitClampedGLU(g gen) {
	g.glu(func() {
		limit, up := g.V(gluN), g.V(gluUp)
		g.SetF(limit, arith.GLULimit)
		g.I(asm.VMINPS, g.V(gluGate), limit, g.V(gluGate)) // a NaN is the second source and stays
		g.I(asm.VMINPS, up, limit, up)
		g.SetF(limit, -arith.GLULimit)
		g.I(asm.VMAXPS, up, limit, up)
		g.I(asm.VADDPS, up, up, g.SplatF(arith.GLULinear))
		g.I(asm.VMULPS, g.V(gluX), g.V(gluGate), g.SplatF(arith.GLUSlope))
	})
}

// emitSigmoidGLU takes the arguments of emitSwiGLU.
func emitSigmoidGLU(g gen) {
	g.glu(func() {
		g.I(asm.VXORPS, g.V(gluX), g.V(gluGate), g.Splat(1<<31))
		g.SetF(g.V(gluGate), 1)
	})
}

// glu emits gate/(1+exp(x)) * up. prepare computes x and may change gate and up.
func (g gen) glu(prepare func()) {
	r := lanes.ExpRange{Lo: 6, Hi: 7}
	g.pointers(p0, p1, p2)
	g.Mov(rows, argN(3))
	g.Mov(n0, argN(4))
	g.SetExpRange(r)
	g.OverRows(rows, func() {
		g.OverGroups(n0, func(h int, tail bool) {
			p := g.V(gluP)
			g.LoadGroup(g.V(gluGate), g.Elem(p1, h), h, tail)
			g.LoadGroup(g.V(gluUp), g.Elem(p2, h), h, tail)
			prepare()
			g.Exp(gluP, gluX, gluN, gluZ, r)
			g.I(asm.VADDPS, p, p, g.SplatF(1))
			g.I(asm.VDIVPS, p, g.V(gluGate), p)
			g.I(asm.VMULPS, p, p, g.V(gluUp))
			g.StoreGroup(g.Elem(p0, h), p, h, tail)
		})
		g.advance(p0, 0, tmp)
		g.advance(p1, 1, tmp)
		g.advance(p2, 2, tmp)
	})
}

// emitSoftCap: P x; N n; F factor, cap.
func emitSoftCap(g gen) {
	c := lanes.CapRegs{X: g.V(0), P: g.V(1), N: g.V(2), Z: g.V(3), Factor: g.V(4), Cap: g.V(5), Twice: g.V(6)}
	r := lanes.ExpRange{Lo: 7, Hi: 8}
	g.pointers(p0)
	g.Mov(n0, argN(0))
	g.I(asm.VBROADCASTSS, c.Factor, argF(0))
	g.I(asm.VBROADCASTSS, c.Cap, argF(1))
	g.I(asm.VADDPS, c.Twice, c.Cap, c.Cap)
	g.SetExpRange(r)
	g.OverGroups(n0, func(h int, tail bool) {
		g.LoadGroup(c.X, g.Elem(p0, h), h, tail)
		g.SoftCap(c, g.V(r.Lo), g.RangeHi(r))
		g.StoreGroup(g.Elem(p0, h), c.X, h, tail)
	})
}
