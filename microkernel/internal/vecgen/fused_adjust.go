package vecgen

import "sandwich/microkernel/internal/amd64/asm"

// What some families of models do to scores between their product and the softmax.

// skipped takes a block off what the rows skip, stores how much of this one they do, and makes n,
// what they see of it, zero for rows that skip all of that.
func (g *fused) skipped(n asm.Vec) {
	low, skip, t := g.v(3), g.v(4), g.v(5)
	g.I(asm.VMOVUPS, skip, asm.At(stateReg, StateSkip))
	g.I(asm.VXORPS, low, low, low)
	g.I(asm.VPMAXSD, low, low, skip)
	g.I(asm.VPMINSD, low, low, g.splat(positions))
	g.I(asm.VMOVUPS, asm.At(scrReg, scrLow), low)
	g.I(asm.VPSUBD, skip, skip, g.splat(positions))
	g.I(asm.VMOVUPS, asm.At(stateReg, StateSkip), skip)
	if g.wide {
		g.I(asm.VPCMPDK, asm.K3, n, low, asm.Imm(6)) // seen > skipped
		g.I(asm.VMOVUPS, n.KZ(asm.K3), asm.At(scrReg, scrSeen))
	} else {
		g.I(asm.VPCMPGTD, t, n, low)
		g.I(asm.VANDPS, n, n, t)
	}
	g.I(asm.VMOVUPS, asm.At(scrReg, scrSeen), n)
	g.foldInt(asm.VPMAXSD, 3, 5)
	g.I(asm.VMOVD, asm.At(scrReg, scrAnyLow), asm.X(3))
}

// adjustScores caps the scores of all rows in scratch and makes those -Inf that are before a row's
// window. Without a cap it is passed over where no row skips anything of the block.
func (g *fused) adjustScores() {
	if !g.Window && !g.Cap {
		return
	}
	const inf, mask = 9, 10
	c := capRegs{x: g.v(0), p: g.v(1), n: g.v(2), z: g.v(3), factor: g.v(4), cap: g.v(5), twice: g.v(6)}
	r := expRange{lo: 7, hi: 8}
	done := g.NewLabel()
	if g.Cap {
		g.I(asm.VBROADCASTSS, c.factor, asm.At(args, offFactor))
		g.I(asm.VBROADCASTSS, c.cap, asm.At(args, offSoftCap))
		g.I(asm.VADDPS, c.twice, c.cap, c.cap)
		g.setExpRange(r)
	} else {
		g.Mov32(count, asm.At(scrReg, scrAnyLow))
		g.Test(count, count)
		g.Jcc(asm.Zero, done)
	}
	g.setF(g.v(inf), negInf)
	g.Lea(smRow, asm.At(scrReg, scrP))
	g.Mov(smLane, scrReg)
	g.MovImm(passes, uint64(g.Rows))
	g.loopPasses(func() {
		for j := range positions / group * g.parts {
			g.I(asm.VMOVUPS, c.x, g.vector(j))
			if g.Cap {
				g.softCap(c, g.v(r.lo), g.rangeHi(r))
			}
			g.storeSeen(j, c.x, g.v(inf), g.v(mask))
		}
		g.Add(smRow, asm.Imm32(rowP))
		g.Add(smLane, asm.Imm32(4))
	})
	g.Bind(done)
}

// storeSeen stores vector j of a row, with inf in the lanes that the row's window leaves out.
func (g *fused) storeSeen(j int, x, inf, mask asm.Vec) {
	if !g.Window {
		g.I(asm.VMOVUPS, g.vector(j), x)
		return
	}
	g.I(asm.VPBROADCASTD, mask, asm.At(smLane, scrLow))
	if g.wide {
		g.I(asm.VPCMPDK, asm.K3, mask, g.laneIndex(j), asm.Imm(6)) // skipped > index
		g.I(asm.VMOVUPS, g.vector(j), x)
		g.I(asm.VMOVUPS, g.vector(j).K(asm.K3), inf)
		return
	}
	g.I(asm.VPCMPGTD, mask, mask, g.laneIndex(j))
	g.I(asm.VBLENDVPS, x, x, inf, mask)
	g.I(asm.VMOVUPS, g.vector(j), x)
}
