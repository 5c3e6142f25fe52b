package vecgen

import "sandwich/microkernel/internal/amd64/asm"

// The registers most kernels keep their operands in.
const (
	p0   = asm.RSI
	p1   = asm.RDX
	p2   = asm.RCX
	n0   = asm.R8
	rows = asm.RBX
	tmp  = asm.R12
)

// normRows is how many rows emitRMSNorm adds up the squares of at a time: the sixteen lanes of one
// row's sum are a chain, each link of which waits for the one before.
const normRows = 4

// emitRMSNorm: P dst, x, weight; N dstStride, xStride, rows, n; F eps, float32(n).
func emitRMSNorm(g *gen) {
	g.pointers(p0, p1, p2)
	g.Mov(rows, argN(2))
	g.Mov(n0, argN(3))
	single, next := g.NewLabel(), g.NewLabel()
	g.Bind(next)
	g.Cmp(rows, asm.Imm32(normRows))
	g.Jcc(asm.Less, single)
	g.rmsNorm(p1, asm.R13, asm.R14, asm.R15)
	g.Sub(rows, asm.Imm32(normRows))
	g.Jmp(next)
	g.Bind(single)
	g.overRows(rows, func() { g.rmsNorm(p1) })
}

// rmsNorm normalizes the rows from p1 on, as many as there are registers to point at them, of which
// p1 is the first, and moves p0 and p1 behind them.
func (g *gen) rmsNorm(row ...asm.Reg) {
	const t, x = 2 * normRows, 2*normRows + 1
	acc := func(i int) int { return 2 * i } // and the one behind it at AVX2
	for i := range row {
		g.zero(acc(i))
		g.zero(acc(i) + 1)
		if i > 0 {
			g.Mov(row[i], row[i-1])
			g.advance(row[i], 1, tmp)
		}
	}
	g.overGroups(n0, func(h int, tail bool) {
		for i := range row {
			g.load(g.v(x), g.elem(row[i], h), h, tail)
			g.I(asm.VFMADD231PS, g.v(acc(i)+h), g.v(x), g.v(x))
		}
	})
	for i := range row {
		g.sumLanes(acc(i), t)
		s := asm.X(acc(i))
		g.I(asm.VDIVSS, s, s, argF(1))
		g.I(asm.VADDSS, s, s, argF(0))
		g.I(asm.VSQRTSS, s, s, s)
		g.I(asm.VMOVSS, asm.X(t), g.ConstF32(1))
		g.I(asm.VDIVSS, s, asm.X(t), s)
		g.I(asm.VBROADCASTSS, g.v(acc(i)), s)
		g.overGroups(n0, func(h int, tail bool) {
			g.load(g.v(x), g.elem(row[i], h), h, tail)
			g.load(g.v(t), g.elem(p2, h), h, tail)
			g.I(asm.VMULPS, g.v(x), g.v(x), g.v(acc(i)))
			g.I(asm.VMULPS, g.v(x), g.v(x), g.v(t))
			g.store(g.elem(p0, h), g.v(x), h, tail)
		})
		g.advance(p0, 0, tmp)
	}
	g.Mov(p1, row[len(row)-1])
	g.advance(p1, 1, tmp)
}

// emitAdd: P dst, a; N stride, rows, n, stride of a: 0 adds the same row to each.
func emitAdd(g *gen) {
	const x, b = 0, 1
	g.pointers(p0, p1)
	g.Mov(rows, argN(1))
	g.Mov(n0, argN(2))
	g.overRows(rows, func() {
		g.overGroups(n0, func(h int, tail bool) {
			g.load(g.v(x), g.elem(p0, h), h, tail)
			g.load(g.v(b), g.elem(p1, h), h, tail)
			g.I(asm.VADDPS, g.v(x), g.v(x), g.v(b))
			g.store(g.elem(p0, h), g.v(x), h, tail)
		})
		g.advance(p0, 0, tmp)
		g.advance(p1, 3, tmp)
	})
}

// emitPlus: P dst, a, b; N n.
func emitPlus(g *gen) {
	const x, y = 0, 1
	g.pointers(p0, p1, p2)
	g.Mov(n0, argN(0))
	g.overGroups(n0, func(h int, tail bool) {
		g.load(g.v(x), g.elem(p1, h), h, tail)
		g.load(g.v(y), g.elem(p2, h), h, tail)
		g.I(asm.VADDPS, g.v(x), g.v(x), g.v(y))
		g.store(g.elem(p0, h), g.v(x), h, tail)
	})
}

// emitAddScaled: P dst, a; N n; F s.
func emitAddScaled(g *gen) {
	const d, x, s = 0, 1, 2
	g.pointers(p0, p1)
	g.Mov(n0, argN(0))
	g.I(asm.VBROADCASTSS, g.v(s), argF(0))
	g.overGroups(n0, func(h int, tail bool) {
		g.load(g.v(d), g.elem(p0, h), h, tail)
		g.load(g.v(x), g.elem(p1, h), h, tail)
		g.I(asm.VFMADD231PS, g.v(d), g.v(x), g.v(s))
		g.store(g.elem(p0, h), g.v(d), h, tail)
	})
}

// emitScale: P dst; N n; F s.
func emitScale(g *gen) {
	const d, s = 0, 1
	g.pointers(p0)
	g.Mov(n0, argN(0))
	g.I(asm.VBROADCASTSS, g.v(s), argF(0))
	g.overGroups(n0, func(h int, tail bool) {
		g.load(g.v(d), g.elem(p0, h), h, tail)
		g.I(asm.VMULPS, g.v(d), g.v(d), g.v(s))
		g.store(g.elem(p0, h), g.v(d), h, tail)
	})
}
