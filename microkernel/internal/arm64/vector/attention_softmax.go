package vector

import (
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/arm64/asm"
	"sandwich/microkernel/internal/kernel"
)

// widenScales converts the scales of the block's keys and values.
func (g *fused) widenScales() {
	const x = block(0)
	n := g.ScaleFloats()
	if n == 0 {
		return
	}
	g.AddImm(fOut, fScr, scalesAt(g.AttentionSpec))
	for _, from := range []asm.X{fK, fV} {
		g.AddImm(fTmp, from, positions*g.HeadDim)
		g.MovImm(fTmp2, n/arith.Lanes)
		g.Loop(fTmp2, func() {
			for i := 0; i < blockRegs; i += 2 {
				g.I(asm.LDRQ, x.v(i+1), fTmp, asm.Imm(8*i))
				g.I(asm.FCVTL, x.v(i), x.v(i+1))
				g.I(asm.FCVTL2, x.v(i+1), x.v(i+1))
			}
			g.store(x, fOut, false)
			g.AddImm(fTmp, fTmp, 2*arith.Lanes)
			g.AddImm(fOut, fOut, 4*arith.Lanes)
		})
	}
}

// softmaxRows is OpSoftmax for rows of 64 in scratch. If every row sees all 64 positions, as in
// all blocks of a sequence but the last, it runs code without masks.
func (g *fused) softmaxRows() {
	done, partial := g.NewLabel(), g.NewLabel()
	g.I(asm.LDRW, fTmp, fScr, asm.Imm(kernel.ScratchSmallest))
	g.Cmp(fTmp, positions)
	g.BC(asm.NotEqual, partial)
	g.softmaxEach(false)
	g.B(done)
	g.Bind(partial)
	g.softmaxEach(true)
	g.Bind(done)
}

// Registers of softmaxEach in addition to blocks.
const (
	fRow  = fA0     // scores of the row
	fLane = fA0 + 1 // entry of the row in the lane arrays of scratch
	fSeen = asm.V(24)
	fTop  = asm.V(25)
	fMul  = asm.V(26)
	fMask = asm.V(27)
	fInf  = asm.V(28)
)

// softmaxEach processes one row at a time. Masked, the lanes after the last position that the row
// sees are excluded from maximum and sum and become zero. A row that sees a position has a maximum
// of at least arith.LowestScore, another one -Inf.
func (g *fused) softmaxEach(masked bool) {
	const x, n, z, p, acc = block(0), block(1), block(2), block(3), block(4)
	g.AddImm(fTmp, nArgs, offScale)
	g.I(asm.LD1R, fMul, fTmp)
	g.Splat(fInf, arith.NegInfBits)
	g.AddImm(fRow, fScr, kernel.ScratchScores)
	g.MovX(fLane, fScr)
	g.MovImm(fPasses, g.Rows)
	g.Loop(fPasses, func() {
		if masked {
			g.AddImm(fTmp, fLane, kernel.ScratchSeen)
			g.I(asm.LD1R, fSeen, fTmp)
		}
		g.SplatF(fTop, arith.LowestScore)
		each(func(i int) {
			if masked {
				g.Move(acc.v(i), fInf)
			} else {
				g.Move(acc.v(i), fTop)
			}
		})
		for j := range positions / arith.Lanes {
			g.AddImm(fTmp, fRow, 4*arith.Lanes*j)
			g.load(x, fTmp, false)
			each(func(i int) {
				v := x.v(i)
				if masked {
					g.Move(z.v(i), fTop)
					g.max(z.v(i), v, nConst)
					v = z.v(i)
					g.laneMask(arith.Lanes*j + 4*i)
					g.I(asm.BIF, v, fInf, fMask)
				}
				g.max(acc.v(i), v, nConst)
			})
		}
		g.maxLanes(acc)
		g.I(asm.FMUL, fTop, acc.v(0), fMul)
		g.I(asm.STRS, fTop, fLane, asm.Imm(kernel.ScratchMax))
		g.zero(acc)
		for j := range positions / arith.Lanes {
			g.AddImm(fTmp, fRow, 4*arith.Lanes*j)
			g.load(x, fTmp, false)
			g.opAll(asm.FMUL, x, x, fMul)
			g.opAll(asm.FSUB, x, x, fTop)
			g.exp(false, expOf(p, x, n, z))
			if masked {
				each(func(i int) {
					g.laneMask(arith.Lanes*j + 4*i)
					g.I(asm.ANDV, p.v(i), p.v(i), fMask)
				})
			}
			g.store(p, fTmp, false)
			g.op3(asm.FADD, acc, acc, p)
		}
		g.sumLanes(acc)
		g.I(asm.STRS, acc.v(0), fLane, asm.Imm(kernel.ScratchSum))
		g.AddImm(fRow, fRow, kernel.ScratchRow)
		g.AddImm(fLane, fLane, 4)
	})
}

// laneMask sets the mask of the seen lanes of the vector that starts at a position.
func (g *fused) laneMask(position int) {
	g.laneNumbers(fMask, position)
	g.I(asm.CMGT4S, fMask, fSeen, fMask)
}

// mergeSums merges the maxima and sums of all rows, one lane per row, and stores the factors of
// the running output and of the block's output in scratch. Rows whose block maximum is -Inf are
// unchanged.
func (g *fused) mergeSums() {
	m, mb, top, s, a := asm.V(0), asm.V(1), asm.V(2), asm.V(3), asm.V(4)
	b, x, y, keep := asm.V(5), asm.V(6), asm.V(7), asm.V(8)
	g.I(asm.LDRQ, m, fState, asm.Imm(kernel.StateMax))
	g.I(asm.LDRQ, mb, fScr, asm.Imm(kernel.ScratchMax))
	g.I(asm.LDRQ, s, fState, asm.Imm(kernel.StateSum))
	g.Move(top, m)
	g.max(top, mb, nConst)
	g.I(asm.FSUB, x, m, top)
	g.I(asm.FSUB, y, mb, top)
	g.exp(false, []expRegs{{p: a, x: x, n: 16, z: 17}, {p: b, x: y, n: 18, z: 19}})
	g.I(asm.STRQ, a, fScr, asm.Imm(kernel.ScratchOldMul))
	g.I(asm.STRQ, b, fScr, asm.Imm(kernel.ScratchNewMul))
	g.I(asm.LDRQ, x, fScr, asm.Imm(kernel.ScratchSum))
	g.I(asm.FMUL, x, x, b)
	g.I(asm.FMLA, x, s, a)
	g.Splat(keep, arith.NegInfBits)
	g.I(asm.FCMEQ, keep, mb, keep)
	g.I(asm.BIT, top, m, keep)
	g.I(asm.BIT, x, s, keep)
	g.I(asm.STRQ, top, fState, asm.Imm(kernel.StateMax))
	g.I(asm.STRQ, x, fState, asm.Imm(kernel.StateSum))
}
