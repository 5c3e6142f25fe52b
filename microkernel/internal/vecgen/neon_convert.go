package vecgen

import a64 "sandwich/microkernel/internal/arm64/asm"

// neonQuantizeQ8: arguments as emitQuantizeQ8.
func neonQuantizeQ8(g neonGen) {
	const lo, hi, t = block(0), block(1), block(2)
	limit, scale, inv, sum := a64.V(28), a64.V(24), a64.V(25), a64.V(26)
	xp, out, bits, tiny, span := nB0, nB1, nX0, nX1, nX2
	regs := func(f func(v a64.V)) {
		for i := range 2 * blockRegs {
			f(a64.V(i))
		}
	}
	g.pointers(xp, out)
	g.argN(nRows, 0)
	g.SplatF(limit, 127)
	g.MovImm(tiny, tinyBits)
	g.MovImm(span, infBits-tinyBits)
	g.overRows(nRows, func() {
		special, done := g.NewLabel(), g.NewLabel()
		g.load(lo, xp, false)
		g.AddImm(nC0, xp, 4*group)
		g.load(hi, nC0, false)
		// The bits of magnitudes compare as integers in the order of the values, with NaN on top.
		each(func(i int) {
			g.I(a64.FABS, t.v(i), lo.v(i))
			g.I(a64.FABS, nConst, hi.v(i))
			g.I(a64.SMAX4S, t.v(i), t.v(i), nConst)
		})
		g.I(a64.SMAX4S, t.v(0), t.v(0), t.v(1))
		g.I(a64.SMAX4S, t.v(2), t.v(2), t.v(3))
		g.I(a64.SMAX4S, t.v(0), t.v(0), t.v(2))
		g.I(a64.SMAXV4S, t.v(0), t.v(0))
		g.I(a64.UMOVW, bits, t.v(0), a64.Imm(0))
		g.I(a64.SUB, nT0, bits, tiny)
		g.CmpX(nT0, span)
		g.BC(a64.AboveOrEqual, special)
		g.I(a64.DUPS, t.v(0), t.v(0), a64.Imm(0))
		g.I(a64.FDIV, scale, t.v(0), limit)
		g.I(a64.STRS, scale, out, a64.Imm(0))
		g.I(a64.FDIV, inv, limit, t.v(0))
		regs(func(v a64.V) { g.I(a64.FMUL, v, v, inv) })
		regs(func(v a64.V) { g.I(a64.FCVTNS, v, v) })
		g.AddImm(nT1, out, 40)
		for h, b := range []block{lo, hi} {
			s := sum + a64.V(h)
			g.I(a64.ADDV4S, s, b.v(0), b.v(1))
			g.I(a64.ADDV4S, nConst, b.v(2), b.v(3))
			g.I(a64.ADDV4S, s, s, nConst)
			g.I(a64.ADDVS, s, s)
			g.I(a64.UMOVW, nT0, s, a64.Imm(0))
			g.I(a64.STRHP, nT0, nT1, a64.Imm(2))
		}
		g.I(a64.ADDV4S, sum, sum, sum+1)
		g.I(a64.UMOVW, nT0, sum, a64.Imm(0))
		g.I(a64.LSLI, nT0, nT0, a64.Imm(7))
		g.I(a64.SUB, nT0, a64.ZR, nT0)
		g.I(a64.STRW, nT0, out, a64.Imm(4))
		g.I(a64.SCVTF, sum, sum)
		g.I(a64.FMUL, sum, sum, scale)
		g.I(a64.STRS, sum, out, a64.Imm(44))
		for h, b := range []block{lo, hi} {
			g.I(a64.SQXTN4S, t.v(0), b.v(0))
			g.I(a64.SQXTN2S, t.v(0), b.v(1))
			g.I(a64.SQXTN4S, t.v(1), b.v(2))
			g.I(a64.SQXTN2S, t.v(1), b.v(3))
			g.I(a64.SQXTN8H, t.v(2), t.v(0))
			g.I(a64.SQXTN2H, t.v(2), t.v(1))
			g.I(a64.STURQ, t.v(2), out, a64.Imm(8+16*h))
		}
		g.B(done)

		g.Bind(special)
		g.quantizeNothing(t, out, bits, tiny)

		g.Bind(done)
		g.AddImm(xp, xp, 128)
		g.AddImm(out, out, 48)
	})
}

// quantizeNothing writes the block of a row without a scale: zeros, whose scale is zero where the
// values are too small for one, and NaN where one of them is not finite.
func (g neonGen) quantizeNothing(t block, out, bits, tiny a64.X) {
	finite := g.NewLabel()
	g.Zero(t.v(0))
	g.I(a64.STURQ, t.v(0), out, a64.Imm(8))
	g.I(a64.STURQ, t.v(0), out, a64.Imm(24))
	g.I(a64.STRW, a64.ZR, out, a64.Imm(4))
	g.I(a64.STRW, a64.ZR, out, a64.Imm(40))
	g.MovX(nT1, a64.ZR)
	g.CmpX(bits, tiny)
	g.BC(a64.Below, finite)
	g.MovImm(nT1, nanBits)
	g.Bind(finite)
	g.I(a64.STRW, nT1, out, a64.Imm(0))
	g.I(a64.STRW, nT1, out, a64.Imm(44))
}

// narrow rounds a block of float32 to halves in its first and third register.
func (g neonGen) narrow(b block) {
	for i := 0; i < blockRegs; i += 2 {
		g.I(a64.FCVTN, b.v(i), b.v(i))
		g.I(a64.FCVTN2, b.v(i), b.v(i+1))
	}
}

// neonToF16: arguments as emitToF16.
func neonToF16(g neonGen) {
	const x = block(0)
	g.pointers(nC0, nC1)
	g.argN(nLen, 0)
	g.groups(nLen, []cursor{{nC0, 2 * group}, {nC1, 4 * group}}, func(tail bool) {
		if tail {
			g.Loop(nLeft, func() {
				g.I(a64.LDRSP, x.v(0), nC1, a64.Imm(4))
				g.I(a64.FCVTN, x.v(0), x.v(0))
				g.I(a64.STRHVP, x.v(0), nC0, a64.Imm(2))
			})
			return
		}
		g.load(x, nC1, false)
		g.narrow(x)
		g.I(a64.STPQ, x.v(0), x.v(2), nC0, a64.Imm(0))
	})
}

// neonToF32: arguments as emitToF32.
func neonToF32(g neonGen) {
	const x = block(0)
	g.pointers(nC0, nC1)
	g.argN(nLen, 0)
	g.groups(nLen, []cursor{{nC0, 4 * group}, {nC1, 2 * group}}, func(tail bool) {
		if tail {
			g.Loop(nLeft, func() {
				g.I(a64.LDRHVP, x.v(0), nC1, a64.Imm(2))
				g.I(a64.FCVTL, x.v(0), x.v(0))
				g.I(a64.STRSP, x.v(0), nC0, a64.Imm(4))
			})
			return
		}
		g.I(a64.LDPQ, x.v(1), x.v(3), nC1, a64.Imm(0))
		for i := 0; i < blockRegs; i += 2 {
			g.I(a64.FCVTL, x.v(i), x.v(i+1))
			g.I(a64.FCVTL2, x.v(i+1), x.v(i+1))
		}
		g.store(x, nC0, false)
	})
}

// neonStoreK16: arguments as emitStoreK16.
func neonStoreK16(g neonGen) {
	x := a64.V(0)
	g.pointers(nC0, nC1)
	g.argN(nLen, 0)
	g.overRows(nLen, func() {
		g.I(a64.LDRSP, x, nC1, a64.Imm(4))
		g.I(a64.FCVTN, x, x)
		g.I(a64.STRHVP, x, nC0, a64.Imm(2*group))
	})
}

// neonStoreV16: arguments as emitStoreV16.
func neonStoreV16(g neonGen) {
	const x = block(0)
	const panel = 64 * group * 2
	g.pointers(nB0, nB1)
	g.argN(nLen, 0)
	g.argN(nRows, 1)
	g.overRows(nRows, func() {
		g.MovX(nC0, nB0)
		g.MovX(nC1, nB1)
		g.groups(nLen, []cursor{{nC0, panel}, {nC1, 4 * group}}, func(tail bool) {
			g.load(x, nC1, tail)
			g.narrow(x)
			g.I(a64.STPQ, x.v(0), x.v(2), nC0, a64.Imm(0))
		})
		g.AddImm(nB0, nB0, 2*group)
		g.nextRow(nB1, 2)
	})
}
