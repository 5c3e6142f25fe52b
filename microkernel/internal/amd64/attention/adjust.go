package attention

import (
	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/amd64/lanes"
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/kernel"
)

// skipped decrements the positions that the rows skip by a block, stores how many of this block
// they skip, and zeroes the entries of n, the positions they see, for rows that skip all of them.
func (g *gen) skipped(n asm.Vec) {
	low, skip, t := g.V(3), g.V(4), g.V(5)
	g.I(asm.VMOVUPS, skip, asm.At(stateReg, kernel.StateSkip))
	g.I(asm.VXORPS, low, low, low)
	g.I(asm.VPMAXSD, low, low, skip)
	g.I(asm.VPMINSD, low, low, g.Splat(positions))
	g.I(asm.VMOVUPS, asm.At(scrReg, kernel.ScratchLow), low)
	g.I(asm.VPSUBD, skip, skip, g.Splat(positions))
	g.I(asm.VMOVUPS, asm.At(stateReg, kernel.StateSkip), skip)
	if g.Wide {
		g.I(asm.VPCMPDK, asm.K3, n, low, asm.Imm(6)) // seen > skipped
		g.I(asm.VMOVUPS, n.KZ(asm.K3), asm.At(scrReg, kernel.ScratchSeen))
	} else {
		g.I(asm.VPCMPGTD, t, n, low)
		g.I(asm.VANDPS, n, n, t)
	}
	g.I(asm.VMOVUPS, asm.At(scrReg, kernel.ScratchSeen), n)
	g.FoldInt(asm.VPMAXSD, 3, 5)
	g.I(asm.VMOVD, asm.At(scrReg, kernel.ScratchAnyLow), asm.X(3))
}

// adjustScores applies what some model families do to scores before the softmax: it soft-caps the
// scores of all rows in scratch and sets scores before a row's window to -Inf. Without a cap it is
// skipped at run time if no row skips positions of the block.
func (g *gen) adjustScores() {
	if !g.Window && !g.Capped {
		return
	}
	const inf, mask = 9, 10
	c := lanes.CapRegs{X: g.V(0), P: g.V(1), N: g.V(2), Z: g.V(3), Factor: g.V(4), Cap: g.V(5), Twice: g.V(6)}
	r := lanes.ExpRange{Lo: 7, Hi: 8}
	done := g.NewLabel()
	if g.Capped {
		g.I(asm.VBROADCASTSS, c.Factor, asm.At(args, offFactor))
		g.I(asm.VBROADCASTSS, c.Cap, asm.At(args, offSoftCap))
		g.I(asm.VADDPS, c.Twice, c.Cap, c.Cap)
		g.SetExpRange(r)
	} else {
		g.Mov32(count, asm.At(scrReg, kernel.ScratchAnyLow))
		g.Test(count, count)
		g.Jcc(asm.Zero, done)
	}
	g.SetF(g.V(inf), negInf)
	g.Lea(smRow, asm.At(scrReg, kernel.ScratchScores))
	g.Mov(smLane, scrReg)
	g.MovImm(passes, uint64(g.Rows))
	g.loopPasses(func() {
		for j := range positions / arith.Lanes * g.Parts {
			g.I(asm.VMOVUPS, c.X, g.vector(j))
			if g.Capped {
				g.SoftCap(c, g.V(r.Lo), g.RangeHi(r))
			}
			g.storeSeen(j, c.X, g.V(inf), g.V(mask))
		}
		g.Add(smRow, asm.Imm32(kernel.ScratchRow))
		g.Add(smLane, asm.Imm32(4))
	})
	g.Bind(done)
}

// storeSeen stores vector j of a row, with inf in the lanes outside the row's window.
func (g *gen) storeSeen(j int, x, inf, mask asm.Vec) {
	if !g.Window {
		g.I(asm.VMOVUPS, g.vector(j), x)
		return
	}
	g.I(asm.VPBROADCASTD, mask, asm.At(smLane, kernel.ScratchLow))
	if g.Wide {
		g.I(asm.VPCMPDK, asm.K3, mask, g.laneIndex(j), asm.Imm(6)) // skipped > index
		g.I(asm.VMOVUPS, g.vector(j), x)
		g.I(asm.VMOVUPS, g.vector(j).K(asm.K3), inf)
		return
	}
	g.I(asm.VPCMPGTD, mask, mask, g.laneIndex(j))
	g.I(asm.VBLENDVPS, x, x, inf, mask)
	g.I(asm.VMOVUPS, g.vector(j), x)
}
