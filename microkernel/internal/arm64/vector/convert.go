package vector

import (
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/arm64/asm"
)

// emitQuantizeQ8 emits the operation of the same name in amd64/vector.
func emitQuantizeQ8(g gen) {
	const lo, hi, t = block(0), block(1), block(2)
	limit, scale, inv, sum := asm.V(28), asm.V(24), asm.V(25), asm.V(26)
	xp, out, bits, tiny, span := nB0, nB1, nX0, nX1, nX2
	regs := func(f func(v asm.V)) {
		for i := range 2 * blockRegs {
			f(asm.V(i))
		}
	}
	g.pointers(xp, out)
	g.argN(nRows, 0)
	g.SplatF(limit, 127)
	g.MovImm(tiny, arith.TinyQ8Bits)
	g.MovImm(span, arith.InfBits-arith.TinyQ8Bits)
	g.overRows(nRows, func() {
		special, done := g.NewLabel(), g.NewLabel()
		g.load(lo, xp, false)
		g.AddImm(nC0, xp, 4*arith.Lanes)
		g.load(hi, nC0, false)
		// The bits of magnitudes compare as integers in the order of the values, with NaN on top.
		each(func(i int) {
			g.I(asm.FABS, t.v(i), lo.v(i))
			g.I(asm.FABS, nConst, hi.v(i))
			g.I(asm.SMAX4S, t.v(i), t.v(i), nConst)
		})
		g.I(asm.SMAX4S, t.v(0), t.v(0), t.v(1))
		g.I(asm.SMAX4S, t.v(2), t.v(2), t.v(3))
		g.I(asm.SMAX4S, t.v(0), t.v(0), t.v(2))
		g.I(asm.SMAXV4S, t.v(0), t.v(0))
		g.I(asm.UMOVW, bits, t.v(0), asm.Imm(0))
		g.I(asm.SUB, nT0, bits, tiny)
		g.CmpX(nT0, span)
		g.BC(asm.AboveOrEqual, special)
		g.I(asm.DUPS, t.v(0), t.v(0), asm.Imm(0))
		g.I(asm.FDIV, scale, t.v(0), limit)
		g.I(asm.STRS, scale, out, asm.Imm(0))
		g.I(asm.FDIV, inv, limit, t.v(0))
		regs(func(v asm.V) { g.I(asm.FMUL, v, v, inv) })
		regs(func(v asm.V) { g.I(asm.FCVTNS, v, v) })
		g.AddImm(nT1, out, 40)
		for h, b := range []block{lo, hi} {
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
		g.I(asm.STRW, nT0, out, asm.Imm(4))
		g.I(asm.SCVTF, sum, sum)
		g.I(asm.FMUL, sum, sum, scale)
		g.I(asm.STRS, sum, out, asm.Imm(44))
		for h, b := range []block{lo, hi} {
			g.I(asm.SQXTN4S, t.v(0), b.v(0))
			g.I(asm.SQXTN2S, t.v(0), b.v(1))
			g.I(asm.SQXTN4S, t.v(1), b.v(2))
			g.I(asm.SQXTN2S, t.v(1), b.v(3))
			g.I(asm.SQXTN8H, t.v(2), t.v(0))
			g.I(asm.SQXTN2H, t.v(2), t.v(1))
			g.I(asm.STURQ, t.v(2), out, asm.Imm(8+16*h))
		}
		g.B(done)

		g.Bind(special)
		g.quantizeSpecial(t, out, bits, tiny)

		g.Bind(done)
		g.AddImm(xp, xp, 128)
		g.AddImm(out, out, 48)
	})
}

// quantizeSpecial writes a block of zeros without a valid scale: 0 if the values are too small for
// one, NaN if one of them is not finite.
func (g gen) quantizeSpecial(t block, out, bits, tiny asm.X) {
	finite := g.NewLabel()
	g.Zero(t.v(0))
	g.I(asm.STURQ, t.v(0), out, asm.Imm(8))
	g.I(asm.STURQ, t.v(0), out, asm.Imm(24))
	g.I(asm.STRW, asm.ZR, out, asm.Imm(4))
	g.I(asm.STRW, asm.ZR, out, asm.Imm(40))
	g.MovX(nT1, asm.ZR)
	g.CmpX(bits, tiny)
	g.BC(asm.Below, finite)
	g.MovImm(nT1, arith.NaNBits)
	g.Bind(finite)
	g.I(asm.STRW, nT1, out, asm.Imm(0))
	g.I(asm.STRW, nT1, out, asm.Imm(44))
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
