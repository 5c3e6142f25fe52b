package vecgen

import a64 "sandwich/microkernel/internal/arm64/asm"

// skipped is that of the x86-64 kernels: block holds the positions of a block in all lanes.
func (g *neonFused) skipped(n, block a64.V) {
	low, skip := a64.V(4), a64.V(5)
	g.I(a64.LDRQ, skip, fState, a64.Imm(StateSkip))
	g.Zero(low)
	g.I(a64.SMAX4S, low, low, skip)
	g.I(a64.SMIN4S, low, low, block)
	g.I(a64.STRQ, low, fScr, a64.Imm(scrLow))
	g.I(a64.SUBV4S, skip, skip, block)
	g.I(a64.STRQ, skip, fState, a64.Imm(StateSkip))
	g.I(a64.CMGT4S, skip, n, low)
	g.I(a64.ANDV, n, n, skip)
	g.I(a64.SMAXV4S, low, low)
	g.I(a64.STRS, low, fScr, a64.Imm(scrAnyLow))
}

// adjustScores caps the scores of all rows in scratch and makes those -Inf that are before a row's
// window. Without a cap it is passed over where no row skips anything of the block.
func (g *neonFused) adjustScores() {
	if !g.Window && !g.Cap {
		return
	}
	c := neonCap{factor: 20, cap: 21, twice: 22, one: 23}
	done := g.NewLabel()
	if g.Cap {
		g.AddImm(fTmp, nArgs, offFactor)
		g.I(a64.LD1R, c.factor, fTmp)
		g.AddImm(fTmp, nArgs, offSoftCap)
		g.I(a64.LD1R, c.cap, fTmp)
		g.I(a64.FADD, c.twice, c.cap, c.cap)
		g.SplatF(c.one, 1)
	} else {
		g.I(a64.LDRW, fTmp, fScr, a64.Imm(scrAnyLow))
		g.CBZ(fTmp, done)
	}
	g.Splat(fInf, negInfBits)
	g.AddImm(fRow, fScr, scrP)
	g.MovX(fLane, fScr)
	g.MovImm(fPasses, g.Rows)
	g.Loop(fPasses, func() {
		if g.Window {
			g.AddImm(fTmp, fLane, scrLow)
			g.I(a64.LD1R, fSeen, fTmp)
		}
		for j := range positions / group {
			g.AddImm(fTmp, fRow, 4*group*j)
			g.load(nX, fTmp, false)
			if g.Cap {
				g.softCap(c)
			}
			if g.Window {
				each(func(i int) {
					g.laneMask(group*j + 4*i)
					g.I(a64.BIT, nX.v(i), fInf, fMask)
				})
			}
			g.store(nX, fTmp, false)
		}
		g.AddImm(fRow, fRow, rowP)
		g.AddImm(fLane, fLane, 4)
	})
	g.Bind(done)
}
