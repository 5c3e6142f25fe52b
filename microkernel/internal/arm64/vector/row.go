package vector

import "sandwich/microkernel/internal/arm64/asm"

// emitAdd emits the operation of the same name in amd64/vector.
func emitAdd(g gen) {
	const x, b = block(0), block(1)
	g.pointers(nB0, nB1)
	g.argN(nRows, 1)
	g.argN(nLen, 2)
	g.overRows(nRows, func() {
		g.overRow([]asm.X{nC0, nC1}, func(tail bool) {
			g.load(x, nC0, tail)
			g.load(b, nC1, tail)
			g.op3(asm.FADD, x, x, b)
			g.store(x, nC0, tail)
		})
		g.nextRows(0, 3)
	})
}

// emitPlus emits the operation of the same name in amd64/vector.
func emitPlus(g gen) {
	const x, y = block(0), block(1)
	g.pointers(nC0, nC1, nC2)
	g.argN(nLen, 0)
	g.groups(nLen, floats(nC0, nC1, nC2), func(tail bool) {
		g.load(x, nC1, tail)
		g.load(y, nC2, tail)
		g.op3(asm.FADD, x, x, y)
		g.store(x, nC0, tail)
	})
}

// emitAddScaled emits the operation of the same name in amd64/vector.
func emitAddScaled(g gen) {
	const d, x = block(0), block(1)
	s := asm.V(28)
	g.pointers(nC0, nC1)
	g.argN(nLen, 0)
	g.argF(s, 0)
	g.groups(nLen, floats(nC0, nC1), func(tail bool) {
		g.load(d, nC0, tail)
		g.load(x, nC1, tail)
		g.opAll(asm.FMLA, d, x, s)
		g.store(d, nC0, tail)
	})
}

// emitScale emits the operation of the same name in amd64/vector.
func emitScale(g gen) {
	const d = block(0)
	s := asm.V(28)
	g.pointers(nC0)
	g.argN(nLen, 0)
	g.argF(s, 0)
	g.groups(nLen, floats(nC0), func(tail bool) {
		g.load(d, nC0, tail)
		g.opAll(asm.FMUL, d, d, s)
		g.store(d, nC0, tail)
	})
}

// emitMul emits the operation of the same name in amd64/vector.
func emitMul(g gen) {
	const x, y = block(0), block(1)
	g.pointers(nB0, nB1)
	g.argN(nRows, 2)
	g.argN(nLen, 3)
	g.overRows(nRows, func() {
		g.overRow([]asm.X{nC0, nC1}, func(tail bool) {
			g.load(x, nC0, tail)
			g.load(y, nC1, tail)
			g.op3(asm.FMUL, x, x, y)
			g.store(x, nC0, tail)
		})
		g.nextRows(0, 1)
	})
}
