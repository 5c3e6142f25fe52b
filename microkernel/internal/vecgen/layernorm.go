package vecgen

import (
	"sandwich/microkernel/internal/amd64/asm"
	a64 "sandwich/microkernel/internal/arm64/asm"
)

// p3 is the fourth pointer of a kernel.
const p3 = asm.R13

// emitLayerNorm: P dst, x, weight, bias; N dstStride, xStride, rows, n; F eps, float32(n). The
// differences from the mean stand in dst meanwhile: read back, the lanes of a partial group that
// lie beyond the end are zero, and add nothing to the sum of squares.
func emitLayerNorm(g *gen) {
	const acc, t, x, mean, bias = 0, 2, 3, 4, 5 // acc+1 is the second half at AVX2
	g.pointers(p0, p1, p2, p3)
	g.Mov(rows, argN(2))
	g.Mov(n0, argN(3))
	s := asm.X(acc)
	g.overRows(rows, func() {
		g.zero(acc)
		g.zero(acc + 1)
		g.overGroups(n0, func(h int, tail bool) {
			g.load(g.v(x), g.elem(p1, h), h, tail)
			g.I(asm.VADDPS, g.v(acc+h), g.v(acc+h), g.v(x))
		})
		g.sumLanes(acc, t)
		g.I(asm.VDIVSS, s, s, argF(1))
		g.I(asm.VBROADCASTSS, g.v(mean), s)
		g.zero(acc)
		g.zero(acc + 1)
		g.overGroups(n0, func(h int, tail bool) {
			g.load(g.v(x), g.elem(p1, h), h, tail)
			g.I(asm.VSUBPS, g.v(x), g.v(x), g.v(mean))
			g.store(g.elem(p0, h), g.v(x), h, tail)
			if tail {
				g.load(g.v(x), g.elem(p0, h), h, tail)
			}
			g.I(asm.VFMADD231PS, g.v(acc+h), g.v(x), g.v(x))
		})
		g.sumLanes(acc, t)
		g.I(asm.VDIVSS, s, s, argF(1))
		g.I(asm.VADDSS, s, s, argF(0))
		g.I(asm.VSQRTSS, s, s, s)
		g.I(asm.VMOVSS, asm.X(t), g.ConstF32(1))
		g.I(asm.VDIVSS, s, asm.X(t), s)
		g.I(asm.VBROADCASTSS, g.v(acc), s)
		g.overGroups(n0, func(h int, tail bool) {
			g.load(g.v(x), g.elem(p0, h), h, tail)
			g.load(g.v(t), g.elem(p2, h), h, tail)
			g.load(g.v(bias), g.elem(p3, h), h, tail)
			g.I(asm.VMULPS, g.v(x), g.v(x), g.v(acc))
			g.I(asm.VFMADD231PS, g.v(bias), g.v(x), g.v(t))
			g.store(g.elem(p0, h), g.v(bias), h, tail)
		})
		g.advance(p0, 0, tmp)
		g.advance(p1, 1, tmp)
	})
}

// neonLayerNorm: arguments as emitLayerNorm.
func neonLayerNorm(g neonGen) {
	const acc, x, w, b = block(0), block(1), block(2), block(3)
	mean, eps, n, one := a64.V(28), a64.V(24), a64.V(25), a64.V(26)
	g.pointers(nB0, nB1, nB2, nB3)
	g.argN(nRows, 2)
	g.argN(nLen, 3)
	g.argF(eps, 0)
	g.argF(n, 1)
	g.SplatF(one, 1)
	s := acc.v(0)
	g.overRows(nRows, func() {
		g.zero(acc)
		g.overRow([]a64.X{nC1}, func(tail bool) {
			g.load(x, nC1, tail)
			g.op3(a64.FADD, acc, acc, x)
		})
		g.sumLanes(acc)
		g.I(a64.FDIV, mean, s, n)
		g.zero(acc)
		g.overRow([]a64.X{nC0, nC1}, func(tail bool) {
			g.load(x, nC1, tail)
			g.opAll(a64.FSUB, x, x, mean)
			g.store(x, nC0, tail)
			if tail {
				g.load(x, nC0, tail)
			}
			g.op3(a64.FMLA, acc, x, x)
		})
		g.sumLanes(acc)
		g.I(a64.FDIV, s, s, n)
		g.I(a64.FADD, s, s, eps)
		g.I(a64.FSQRT, s, s)
		g.I(a64.FDIV, mean, one, s)
		g.MovX(nC0, nB0)
		g.MovX(nC1, nB2)
		g.MovX(nC2, nB3)
		g.groups(nLen, floats(nC0, nC1, nC2), func(tail bool) {
			g.load(x, nC0, tail)
			g.load(w, nC1, tail)
			g.load(b, nC2, tail)
			g.opAll(a64.FMUL, x, x, mean)
			g.op3(a64.FMLA, b, x, w)
			g.store(b, nC0, tail)
		})
		g.nextRows(0, 1)
	})
}
