package vector

import "sandwich/microkernel/internal/amd64/asm"

// emitAdd: P dst, a; N stride, rows, n, stride of a. A stride of 0 adds the same row to each.
func emitAdd(g gen) {
	const x, b = 0, 1
	g.pointers(p0, p1)
	g.Mov(rows, argN(1))
	g.Mov(n0, argN(2))
	g.OverRows(rows, func() {
		g.OverGroups(n0, func(h int, tail bool) {
			g.LoadGroup(g.V(x), g.Elem(p0, h), h, tail)
			g.LoadGroup(g.V(b), g.Elem(p1, h), h, tail)
			g.I(asm.VADDPS, g.V(x), g.V(x), g.V(b))
			g.StoreGroup(g.Elem(p0, h), g.V(x), h, tail)
		})
		g.advance(p0, 0, tmp)
		g.advance(p1, 3, tmp)
	})
}

// emitPlus: P dst, a, b; N n.
func emitPlus(g gen) {
	const x, y = 0, 1
	g.pointers(p0, p1, p2)
	g.Mov(n0, argN(0))
	g.OverGroups(n0, func(h int, tail bool) {
		g.LoadGroup(g.V(x), g.Elem(p1, h), h, tail)
		g.LoadGroup(g.V(y), g.Elem(p2, h), h, tail)
		g.I(asm.VADDPS, g.V(x), g.V(x), g.V(y))
		g.StoreGroup(g.Elem(p0, h), g.V(x), h, tail)
	})
}

// emitAddScaled: P dst, a; N n; F s.
func emitAddScaled(g gen) {
	const d, x, s = 0, 1, 2
	g.pointers(p0, p1)
	g.Mov(n0, argN(0))
	g.I(asm.VBROADCASTSS, g.V(s), argF(0))
	g.OverGroups(n0, func(h int, tail bool) {
		g.LoadGroup(g.V(d), g.Elem(p0, h), h, tail)
		g.LoadGroup(g.V(x), g.Elem(p1, h), h, tail)
		g.I(asm.VFMADD231PS, g.V(d), g.V(x), g.V(s))
		g.StoreGroup(g.Elem(p0, h), g.V(d), h, tail)
	})
}

// emitScale: P dst; N n; F s.
func emitScale(g gen) {
	const d, s = 0, 1
	g.pointers(p0)
	g.Mov(n0, argN(0))
	g.I(asm.VBROADCASTSS, g.V(s), argF(0))
	g.OverGroups(n0, func(h int, tail bool) {
		g.LoadGroup(g.V(d), g.Elem(p0, h), h, tail)
		g.I(asm.VMULPS, g.V(d), g.V(d), g.V(s))
		g.StoreGroup(g.Elem(p0, h), g.V(d), h, tail)
	})
}

// emitMul: P dst, a; N stride, stride of a, rows, n.
func emitMul(g gen) {
	const x, y = 0, 1
	g.pointers(p0, p1)
	g.Mov(rows, argN(2))
	g.Mov(n0, argN(3))
	g.OverRows(rows, func() {
		g.OverGroups(n0, func(h int, tail bool) {
			g.LoadGroup(g.V(x), g.Elem(p0, h), h, tail)
			g.LoadGroup(g.V(y), g.Elem(p1, h), h, tail)
			g.I(asm.VMULPS, g.V(x), g.V(x), g.V(y))
			g.StoreGroup(g.Elem(p0, h), g.V(x), h, tail)
		})
		g.advance(p0, 0, tmp)
		g.advance(p1, 1, tmp)
	})
}
