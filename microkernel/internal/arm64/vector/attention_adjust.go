package vector

import (
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/arm64/asm"
	"sandwich/microkernel/internal/kernel"
)

// skipped decrements the positions that the rows skip by a block, stores how many of this block
// they skip, and zeroes the lanes of n, the positions they see, for rows that skip all of them.
// block has the positions of a block in every lane.
func (g *fused) skipped(n, block asm.V) {
	low, skip := asm.V(4), asm.V(5)
	g.I(asm.LDRQ, skip, fState, asm.Imm(kernel.StateSkip))
	g.Zero(low)
	g.I(asm.SMAX4S, low, low, skip)
	g.I(asm.SMIN4S, low, low, block)
	g.I(asm.STRQ, low, fScr, asm.Imm(kernel.ScratchLow))
	g.I(asm.SUBV4S, skip, skip, block)
	g.I(asm.STRQ, skip, fState, asm.Imm(kernel.StateSkip))
	g.I(asm.CMGT4S, skip, n, low)
	g.I(asm.ANDV, n, n, skip)
	g.I(asm.SMAXV4S, low, low)
	g.I(asm.STRS, low, fScr, asm.Imm(kernel.ScratchAnyLow))
}

// adjustScores soft-caps the scores of all rows in scratch and sets scores before a row's window
// to -Inf. Without a cap it is skipped at run time if no row skips positions of the block.
func (g *fused) adjustScores() {
	if !g.Window && !g.Capped {
		return
	}
	c := capRegs{factor: 20, cap: 21, twice: 22, one: 23}
	done := g.NewLabel()
	if g.Capped {
		g.AddImm(fTmp, nArgs, offFactor)
		g.I(asm.LD1R, c.factor, fTmp)
		g.AddImm(fTmp, nArgs, offSoftCap)
		g.I(asm.LD1R, c.cap, fTmp)
		g.I(asm.FADD, c.twice, c.cap, c.cap)
		g.SplatF(c.one, 1)
	} else {
		g.I(asm.LDRW, fTmp, fScr, asm.Imm(kernel.ScratchAnyLow))
		g.CBZ(fTmp, done)
	}
	g.Splat(fInf, arith.NegInfBits)
	g.AddImm(fRow, fScr, kernel.ScratchScores)
	g.MovX(fLane, fScr)
	g.MovImm(fPasses, g.Rows)
	g.Loop(fPasses, func() {
		if g.Window {
			g.AddImm(fTmp, fLane, kernel.ScratchLow)
			g.I(asm.LD1R, fSeen, fTmp)
		}
		for j := range positions / arith.Lanes {
			g.AddImm(fTmp, fRow, 4*arith.Lanes*j)
			g.load(nX, fTmp, false)
			if g.Capped {
				g.softCap(c)
			}
			if g.Window {
				each(func(i int) {
					g.laneMask(arith.Lanes*j + 4*i)
					g.I(asm.BIT, nX.v(i), fInf, fMask)
				})
			}
			g.store(nX, fTmp, false)
		}
		g.AddImm(fRow, fRow, kernel.ScratchRow)
		g.AddImm(fLane, fLane, 4)
	})
	g.Bind(done)
}
