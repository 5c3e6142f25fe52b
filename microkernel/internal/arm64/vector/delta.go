package vector

import (
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/arm64/asm"
)

// Registers of the delta rule: pointers to the current rows, and blocks of sixteen columns, with
// the names of vec.Delta.
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

	nDeltaX     = block(0) // beta * (v - S'k)
	nDeltaSQ    = block(1) // S'q over the even rows of the state,
	nDeltaSK    = block(2) // and S'k of the next position
	nDeltaRow   = block(3) // a row of the state
	nDeltaOddSQ = block(4) // the same sums over the odd rows
	nDeltaOddSK = block(5)

	nDeltaD         = asm.V(24) // decay
	nDeltaKeyElem   = asm.V(25) // the elements of q and k for the row of the state,
	nDeltaQueryElem = asm.V(26)
	nDeltaNextElem  = asm.V(27) // and of the next position's k
)

// emitDelta emits the operation of the same name in amd64/vector. Panels follow one another.
func emitDelta(g gen) {
	next, partial, done := g.NewLabel(), g.NewLabel(), g.NewLabel()
	g.argN(nDeltaDim, 0)
	g.Bind(next)
	g.argN(nDeltaCols, 5)
	g.CBZ(nDeltaCols, done)
	g.Cmp(nDeltaCols, arith.Lanes)
	g.BC(asm.Less, partial)
	g.deltaRows(false)
	g.argP(nB0, 0)
	g.I(asm.ADDL, nB0, nB0, nDeltaDim, asm.Imm(6))
	g.I(asm.STRX, nB0, nArgs, asm.Imm(offP))
	for _, p := range []int{3, 4} {
		g.argP(nT0, p)
		g.AddImm(nT0, nT0, 4*arith.Lanes)
		g.I(asm.STRX, nT0, nArgs, asm.Imm(offP+8*p))
	}
	g.AddImm(nDeltaCols, nDeltaCols, -arith.Lanes)
	g.I(asm.STRX, nDeltaCols, nArgs, asm.Imm(offN+8*5))
	g.B(next)
	g.Bind(partial)
	g.MovX(nLeft, nDeltaCols)
	g.deltaRows(true)
	g.Bind(done)
}

// deltaRows emits all rows for the columns of a panel.
func (g gen) deltaRows(tail bool) {
	g.pointers(nB0, nDeltaQ, nDeltaK, nDeltaV, nDeltaOut, nDeltaGate)
	g.argP(nDeltaBeta, 6)
	g.argN(nRows, 1)
	g.zero(nDeltaSK)
	g.zero(nDeltaOddSK)
	g.MovX(nC1, nDeltaK)
	g.overDelta(func(odd bool) {
		g.I(asm.LD1RP, nDeltaKeyElem, nC1)
		g.opAll(asm.FMLA, pick(odd, nDeltaSK, nDeltaOddSK), nDeltaRow, nDeltaKeyElem)
	})
	g.op3(asm.FADD, nDeltaSK, nDeltaSK, nDeltaOddSK)
	g.overRows(nRows, func() { g.deltaRow(tail) })
}

// deltaRow emits one position.
func (g gen) deltaRow(tail bool) {
	g.I(asm.LD1R, nDeltaD, nDeltaGate)
	g.I(asm.LD1R, nDeltaKeyElem, nDeltaBeta)
	g.load(nDeltaX, nDeltaV, tail)
	g.opAll(asm.FMLS, nDeltaX, nDeltaSK, nDeltaD)
	g.opAll(asm.FMUL, nDeltaX, nDeltaX, nDeltaKeyElem)
	for _, sum := range []block{nDeltaSK, nDeltaOddSK, nDeltaSQ, nDeltaOddSQ} {
		g.zero(sum)
	}
	last := g.NewLabel()
	g.MovX(nDeltaNext, nDeltaK)
	g.Cmp(nRows, 1)
	g.BC(asm.Equal, last)
	g.nextRow(nDeltaNext, 2)
	g.Bind(last)
	g.MovX(nC0, nDeltaQ)
	g.MovX(nC1, nDeltaK)
	g.MovX(nC2, nDeltaNext)
	g.overDelta(func(odd bool) {
		g.I(asm.LD1RP, nDeltaQueryElem, nC0)
		g.I(asm.LD1RP, nDeltaKeyElem, nC1)
		g.I(asm.LD1RP, nDeltaNextElem, nC2)
		g.opAll(asm.FMUL, nDeltaRow, nDeltaRow, nDeltaD)
		g.opAll(asm.FMLA, nDeltaRow, nDeltaX, nDeltaKeyElem)
		g.store(nDeltaRow, nT1, false)
		g.opAll(asm.FMLA, pick(odd, nDeltaSQ, nDeltaOddSQ), nDeltaRow, nDeltaQueryElem)
		g.opAll(asm.FMLA, pick(odd, nDeltaSK, nDeltaOddSK), nDeltaRow, nDeltaNextElem)
	})
	g.op3(asm.FADD, nDeltaSK, nDeltaSK, nDeltaOddSK)
	g.op3(asm.FADD, nDeltaSQ, nDeltaSQ, nDeltaOddSQ)
	g.store(nDeltaSQ, nDeltaOut, tail)
	g.MovX(nDeltaK, nDeltaNext)
	g.nextRow(nDeltaQ, 2)
	g.nextRow(nDeltaV, 2)
	g.nextRow(nDeltaOut, 3)
	g.nextRow(nDeltaGate, 4)
	g.nextRow(nDeltaBeta, 4)
}

// pick returns the sum that a row of the state is added to.
func pick(isOdd bool, even, odd block) block {
	if isOdd {
		return odd
	}
	return even
}

// overDelta runs body for each row of the state, which it loads, with nT1 pointing at it.
func (g gen) overDelta(body func(odd bool)) {
	row := func(odd bool) {
		g.load(nDeltaRow, nT1, false)
		body(odd)
		g.AddImm(nT1, nT1, 4*arith.Lanes)
	}
	one, done := g.NewLabel(), g.NewLabel()
	g.MovX(nT1, nB0)
	g.I(asm.LSRI, nT2, nDeltaDim, asm.Imm(1))
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
