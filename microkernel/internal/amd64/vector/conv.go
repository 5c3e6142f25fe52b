package vector

import (
	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/amd64/lanes"
)

// emitConvSiLU: P dst, x, w; N in bytes: stride of dst, stride of rows of x, stride of w, then
// rows and n; R taps, and the stride of taps of x in bytes.
func emitConvSiLU(g gen) {
	const sum, p, x, n, z = 0, 1, 2, 3, 4
	r := lanes.ExpRange{Lo: 5, Hi: 6}
	g.SetExpRange(r)
	g.conv(sum, x, func(h int, tail bool) {
		g.I(asm.VXORPS, g.V(x), g.V(sum), g.Splat(1<<31))
		g.Exp(p, x, n, z, r)
		g.I(asm.VADDPS, g.V(p), g.V(p), g.SplatF(1))
		g.I(asm.VDIVPS, g.V(sum), g.V(sum), g.V(p))
	})
}

// emitConvGate is emitConvSiLU with P[3] gate and N[5] its stride in bytes.
func emitConvGate(g gen) {
	const sum, x = 0, 2
	gate := asm.R12
	g.conv(sum, x, func(h int, tail bool) {
		g.Mov(gate, argP(3))
		g.LoadGroup(g.V(x), g.Elem(gate, h), h, tail)
		g.I(asm.VMULPS, g.V(sum), g.V(sum), g.V(x))
	})
}

// conv emits the loops of a convolution; act computes the stored value from the sum.
func (g gen) conv(sum, x int, act func(h int, tail bool)) {
	tap, weight, taps := asm.R13, asm.R14, asm.R15
	g.pointers(p0, p1, p2)
	g.Mov(rows, argN(3))
	g.Mov(n0, argN(4))
	g.OverRows(rows, func() {
		g.OverGroups(n0, func(h int, tail bool) {
			g.LoadGroup(g.V(sum), g.Elem(p1, h), h, tail)
			g.LoadGroup(g.V(x), g.Elem(p2, h), h, tail)
			g.I(asm.VMULPS, g.V(sum), g.V(sum), g.V(x))
			g.Mov(tap, p1)
			g.Mov(weight, p2)
			g.Mov32(taps, argR(0))
			g.Mov32(tmp, argR(1))
			done, loop := g.NewLabel(), g.NewLabel()
			g.Bind(loop)
			g.Dec(taps)
			g.Jcc(asm.LessOrEqual, done)
			g.Add(tap, tmp)
			g.Add(weight, argN(2))
			g.LoadGroup(g.V(x), g.Elem(tap, h), h, tail)
			g.LoadGroup(g.V(x+1), g.Elem(weight, h), h, tail)
			g.I(asm.VFMADD231PS, g.V(sum), g.V(x), g.V(x+1))
			g.Jmp(loop)
			g.Bind(done)
			act(h, tail)
			g.StoreGroup(g.Elem(p0, h), g.V(sum), h, tail)
		})
		g.Add(p0, argN(0))
		g.Add(p1, argN(1))
		g.Mov(tmp, argP(3))
		g.Add(tmp, argN(5))
		g.Mov(argP(3), tmp)
	})
}
