package vecgen

import "sandwich/microkernel/internal/amd64/asm"

// The constants of the gated units, which are those of microkernel's oracles: -2 sqrt(2/pi) and
// that times 0.044715 for GELU's approximation, slope and limit of gpt-oss's clamped unit.
const (
	geluC1    = -0x1.988454p+0
	geluC3    = -0x1.2444f2p-4
	gluSlope  = -0x1.b3b646p+0
	gluLimit  = 7
	gluLinear = 1 // what is added to the linear factor of a clamped unit
)

// Registers of a gated unit: up and gate are its factors, x what exp is taken of.
const (
	gluGate = 0
	gluUp   = 1
	gluP    = 2
	gluX    = 3
	gluN    = 4
	gluZ    = 5
)

// emitSwiGLU: P dst, gate, up; N dstStride, gateStride, upStride, rows, n.
func emitSwiGLU(g *gen) {
	g.glu(func() { g.I(asm.VXORPS, g.v(gluX), g.v(gluGate), g.splat(1<<31)) })
}

// emitGeGLU: arguments as emitSwiGLU.
func emitGeGLU(g *gen) {
	g.glu(func() {
		x := g.v(gluX)
		g.I(asm.VMULPS, x, g.v(gluGate), g.v(gluGate))
		g.setF(g.v(gluN), geluC3)
		g.I(asm.VFMADD213PS, x, g.v(gluN), g.splatF(geluC1))
		g.I(asm.VMULPS, x, x, g.v(gluGate))
	})
}

// emitClampedGLU: arguments as emitSwiGLU.
func emitClampedGLU(g *gen) {
	g.glu(func() {
		limit, up := g.v(gluN), g.v(gluUp)
		g.setF(limit, gluLimit)
		g.I(asm.VMINPS, g.v(gluGate), limit, g.v(gluGate)) // a NaN is the second source and stays
		g.I(asm.VMINPS, up, limit, up)
		g.setF(limit, -gluLimit)
		g.I(asm.VMAXPS, up, limit, up)
		g.I(asm.VADDPS, up, up, g.splatF(gluLinear))
		g.I(asm.VMULPS, g.v(gluX), g.v(gluGate), g.splatF(gluSlope))
	})
}

// emitSigmoidGLU: arguments as emitSwiGLU.
func emitSigmoidGLU(g *gen) {
	g.glu(func() {
		g.I(asm.VXORPS, g.v(gluX), g.v(gluGate), g.splat(1<<31))
		g.setF(g.v(gluGate), 1)
	})
}

// glu is gate/(1+exp(x)) * up, where prepare makes x and may change gate and up.
func (g *gen) glu(prepare func()) {
	r := expRange{lo: 6, hi: 7}
	g.pointers(p0, p1, p2)
	g.Mov(rows, argN(3))
	g.Mov(n0, argN(4))
	g.setExpRange(r)
	g.overRows(rows, func() {
		g.overGroups(n0, func(h int, tail bool) {
			p := g.v(gluP)
			g.load(g.v(gluGate), g.elem(p1, h), h, tail)
			g.load(g.v(gluUp), g.elem(p2, h), h, tail)
			prepare()
			g.exp(gluP, gluX, gluN, gluZ, r)
			g.I(asm.VADDPS, p, p, g.splatF(1))
			g.I(asm.VDIVPS, p, g.v(gluGate), p)
			g.I(asm.VMULPS, p, p, g.v(gluUp))
			g.store(g.elem(p0, h), p, h, tail)
		})
		g.advance(p0, 0, tmp)
		g.advance(p1, 1, tmp)
		g.advance(p2, 2, tmp)
	})
}

// capRegs are the registers of a soft cap: x becomes cap*tanh(x*factor/2), as cap -
// 2cap/(exp(x*factor)+1).
type capRegs struct{ x, p, n, z, factor, cap, twice asm.Vec }

// softCap caps register x.
func (g *gen) softCap(c capRegs, lo asm.Vec, hi *asm.Vec) {
	g.I(asm.VMULPS, c.x, c.x, c.factor)
	g.expAt(c.p, c.p, c.x, c.n, c.z, lo, hi)
	g.I(asm.VADDPS, c.p, c.p, g.splatF(1))
	g.I(asm.VDIVPS, c.p, c.twice, c.p)
	g.I(asm.VSUBPS, c.x, c.cap, c.p)
}

// emitSoftCap: P x; N n; F factor, cap.
func emitSoftCap(g *gen) {
	c := capRegs{x: g.v(0), p: g.v(1), n: g.v(2), z: g.v(3), factor: g.v(4), cap: g.v(5), twice: g.v(6)}
	r := expRange{lo: 7, hi: 8}
	g.pointers(p0)
	g.Mov(n0, argN(0))
	g.I(asm.VBROADCASTSS, c.factor, argF(0))
	g.I(asm.VBROADCASTSS, c.cap, argF(1))
	g.I(asm.VADDPS, c.twice, c.cap, c.cap)
	g.setExpRange(r)
	g.overGroups(n0, func(h int, tail bool) {
		g.load(c.x, g.elem(p0, h), h, tail)
		g.softCap(c, g.v(r.lo), g.rangeHi(r))
		g.store(g.elem(p0, h), c.x, h, tail)
	})
}
