package vector

import (
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/arm64/asm"
	"sandwich/microkernel/internal/kernel"
)

// Registers of emitQuantizeQ8: the 32 elements of a block, and temporaries.
const (
	q8Low   = block(0)
	q8High  = block(1)
	q8T     = block(2)
	q8Scale = asm.V(24)
	q8Inv   = asm.V(25)
	q8Sum   = asm.V(26) // and the register after it
	q8Limit = asm.V(28) // 127

	q8In   = nB0
	q8Out  = nB1
	q8Bits = nX0 // of the largest magnitude
	q8Tiny = nX1 // arith.TinyQ8Bits
	q8Span = nX2 // the bits from there up to infinity
)

// emitQuantizeQ8 emits the operation of the same name in amd64/vector.
func emitQuantizeQ8(g gen) {
	g.pointers(q8In, q8Out)
	g.argN(nRows, 0)
	g.SplatF(q8Limit, 127)
	g.MovImm(q8Tiny, arith.TinyQ8Bits)
	g.MovImm(q8Span, arith.InfBits-arith.TinyQ8Bits)
	g.overRows(nRows, func() {
		special, done := g.NewLabel(), g.NewLabel()
		g.load(q8Low, q8In, false)
		g.AddImm(nC0, q8In, 4*arith.Lanes)
		g.load(q8High, nC0, false)
		g.quantizeScale(special)
		for i := range asm.V(2 * blockRegs) {
			g.I(asm.FMUL, i, i, q8Inv)
		}
		for i := range asm.V(2 * blockRegs) {
			g.I(asm.FCVTNS, i, i)
		}
		g.quantizeSums()
		g.quantizeBytes()
		g.B(done)

		g.Bind(special)
		g.quantizeSpecial()

		g.Bind(done)
		g.AddImm(q8In, q8In, 4*kernel.ActQ8Block)
		g.AddImm(q8Out, q8Out, kernel.ActQ8Bytes)
	})
}

// quantizeScale computes the scale, which it stores, and its inverse, or branches to special. The
// bits of magnitudes compare as integers in the order of the values, with NaN on top.
func (g gen) quantizeScale(special asm.Label) {
	const t = q8T
	each(func(i int) {
		g.I(asm.FABS, t.v(i), q8Low.v(i))
		g.I(asm.FABS, nConst, q8High.v(i))
		g.I(asm.SMAX4S, t.v(i), t.v(i), nConst)
	})
	g.I(asm.SMAX4S, t.v(0), t.v(0), t.v(1))
	g.I(asm.SMAX4S, t.v(2), t.v(2), t.v(3))
	g.I(asm.SMAX4S, t.v(0), t.v(0), t.v(2))
	g.I(asm.SMAXV4S, t.v(0), t.v(0))
	g.I(asm.UMOVW, q8Bits, t.v(0), asm.Imm(0))
	g.I(asm.SUB, nT0, q8Bits, q8Tiny)
	g.CmpX(nT0, q8Span)
	g.BC(asm.AboveOrEqual, special)
	g.I(asm.DUPS, t.v(0), t.v(0), asm.Imm(0))
	g.I(asm.FDIV, q8Scale, t.v(0), q8Limit)
	g.I(asm.STRS, q8Scale, q8Out, asm.Imm(kernel.ActScale))
	g.I(asm.FDIV, q8Inv, q8Limit, t.v(0))
}

// quantizeSums stores what is derived from the sums of the integers.
func (g gen) quantizeSums() {
	sum := q8Sum
	g.AddImm(nT1, q8Out, kernel.ActHalfSums)
	for h, b := range []block{q8Low, q8High} {
		s := sum + asm.V(h)
		g.I(asm.ADDV4S, s, b.v(0), b.v(1))
		g.I(asm.ADDV4S, nConst, b.v(2), b.v(3))
		g.I(asm.ADDV4S, s, s, nConst)
		g.I(asm.ADDVS, s, s)
		g.I(asm.UMOVW, nT0, s, asm.Imm(0))
		g.I(asm.STRHP, nT0, nT1, asm.Imm(2))
	}
	g.I(asm.ADDV4S, sum, sum, sum+1)
	g.I(asm.UMOVW, nT0, sum, asm.Imm(0))
	g.I(asm.LSLI, nT0, nT0, asm.Imm(7))
	g.I(asm.SUB, nT0, asm.ZR, nT0)
	g.I(asm.STRW, nT0, q8Out, asm.Imm(kernel.ActBias))
	g.I(asm.SCVTF, sum, sum)
	g.I(asm.FMUL, sum, sum, q8Scale)
	g.I(asm.STRS, sum, q8Out, asm.Imm(kernel.ActSum))
}

// quantizeBytes stores the integers.
func (g gen) quantizeBytes() {
	const t = q8T
	for h, b := range []block{q8Low, q8High} {
		g.I(asm.SQXTN4S, t.v(0), b.v(0))
		g.I(asm.SQXTN2S, t.v(0), b.v(1))
		g.I(asm.SQXTN4S, t.v(1), b.v(2))
		g.I(asm.SQXTN2S, t.v(1), b.v(3))
		g.I(asm.SQXTN8H, t.v(2), t.v(0))
		g.I(asm.SQXTN2H, t.v(2), t.v(1))
		g.I(asm.STURQ, t.v(2), q8Out, asm.Imm(kernel.ActQ+16*h))
	}
}

// quantizeSpecial writes a block of zeros without a valid scale: 0 if the values are too small for
// one, NaN if one of them is not finite.
func (g gen) quantizeSpecial() {
	finite, zero := g.NewLabel(), q8T.v(0)
	g.Zero(zero)
	g.I(asm.STURQ, zero, q8Out, asm.Imm(kernel.ActQ))
	g.I(asm.STURQ, zero, q8Out, asm.Imm(kernel.ActQ+16))
	g.I(asm.STRW, asm.ZR, q8Out, asm.Imm(kernel.ActBias))
	g.I(asm.STRW, asm.ZR, q8Out, asm.Imm(kernel.ActHalfSums))
	g.MovX(nT1, asm.ZR)
	g.CmpX(q8Bits, q8Tiny)
	g.BC(asm.Below, finite)
	g.MovImm(nT1, arith.NaNBits)
	g.Bind(finite)
	g.I(asm.STRW, nT1, q8Out, asm.Imm(kernel.ActScale))
	g.I(asm.STRW, nT1, q8Out, asm.Imm(kernel.ActSum))
}

// narrow rounds a block of float32 to halves in its first and third register.
func (g gen) narrow(b block) {
	for i := 0; i < blockRegs; i += 2 {
		g.I(asm.FCVTN, b.v(i), b.v(i))
		g.I(asm.FCVTN2, b.v(i), b.v(i+1))
	}
}

// emitToF16 emits the operation of the same name in amd64/vector.
func emitToF16(g gen) {
	const x = block(0)
	g.pointers(nC0, nC1)
	g.argN(nLen, 0)
	g.groups(nLen, []cursor{{nC0, 2 * arith.Lanes}, {nC1, 4 * arith.Lanes}}, func(tail bool) {
		if tail {
			g.Loop(nLeft, func() {
				g.I(asm.LDRSP, x.v(0), nC1, asm.Imm(4))
				g.I(asm.FCVTN, x.v(0), x.v(0))
				g.I(asm.STRHVP, x.v(0), nC0, asm.Imm(2))
			})
			return
		}
		g.load(x, nC1, false)
		g.narrow(x)
		g.I(asm.STPQ, x.v(0), x.v(2), nC0, asm.Imm(0))
	})
}

// emitToF32 emits the operation of the same name in amd64/vector.
func emitToF32(g gen) {
	const x = block(0)
	g.pointers(nC0, nC1)
	g.argN(nLen, 0)
	g.groups(nLen, []cursor{{nC0, 4 * arith.Lanes}, {nC1, 2 * arith.Lanes}}, func(tail bool) {
		if tail {
			g.Loop(nLeft, func() {
				g.I(asm.LDRHVP, x.v(0), nC1, asm.Imm(2))
				g.I(asm.FCVTL, x.v(0), x.v(0))
				g.I(asm.STRSP, x.v(0), nC0, asm.Imm(4))
			})
			return
		}
		g.I(asm.LDPQ, x.v(1), x.v(3), nC1, asm.Imm(0))
		for i := 0; i < blockRegs; i += 2 {
			g.I(asm.FCVTL, x.v(i), x.v(i+1))
			g.I(asm.FCVTL2, x.v(i+1), x.v(i+1))
		}
		g.store(x, nC0, false)
	})
}

// emitStoreK16 emits the operation of the same name in amd64/vector.
func emitStoreK16(g gen) {
	x := asm.V(0)
	g.pointers(nC0, nC1)
	g.argN(nLen, 0)
	g.overRows(nLen, func() {
		g.I(asm.LDRSP, x, nC1, asm.Imm(4))
		g.I(asm.FCVTN, x, x)
		g.I(asm.STRHVP, x, nC0, asm.Imm(2*arith.Lanes))
	})
}

// emitStoreV16 emits the operation of the same name in amd64/vector.
func emitStoreV16(g gen) {
	const x = block(0)
	const panel = 64 * arith.Lanes * 2
	g.pointers(nB0, nB1)
	g.argN(nLen, 0)
	g.argN(nRows, 1)
	g.overRows(nRows, func() {
		g.MovX(nC0, nB0)
		g.MovX(nC1, nB1)
		g.groups(nLen, []cursor{{nC0, panel}, {nC1, 4 * arith.Lanes}}, func(tail bool) {
			g.load(x, nC1, tail)
			g.narrow(x)
			g.I(asm.STPQ, x.v(0), x.v(2), nC0, asm.Imm(0))
		})
		g.AddImm(nB0, nB0, 2*arith.Lanes)
		g.nextRow(nB1, 2)
	})
}
