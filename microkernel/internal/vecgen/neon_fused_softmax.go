package vecgen

import a64 "sandwich/microkernel/internal/arm64/asm"

// widenScales converts the scales of the block's keys and values.
func (g *neonFused) widenScales() {
	const x = block(0)
	n := g.scaleFloats()
	if n == 0 {
		return
	}
	g.AddImm(fOut, fScr, g.scaleAt())
	for _, from := range []a64.X{fK, fV} {
		g.AddImm(fTmp, from, positions*g.HeadDim)
		g.MovImm(fTmp2, n/group)
		g.Loop(fTmp2, func() {
			for i := 0; i < blockRegs; i += 2 {
				g.I(a64.LDRQ, x.v(i+1), fTmp, a64.Imm(8*i))
				g.I(a64.FCVTL, x.v(i), x.v(i+1))
				g.I(a64.FCVTL2, x.v(i+1), x.v(i+1))
			}
			g.store(x, fOut, false)
			g.AddImm(fTmp, fTmp, 2*group)
			g.AddImm(fOut, fOut, 4*group)
		})
	}
}

// softmaxRows is the Softmax kernel for rows of 64 in scratch. All blocks of a sequence but the
// last are seen whole by its last token: when every row sees all 64 positions there is code without
// masks.
func (g *neonFused) softmaxRows() {
	done, partial := g.NewLabel(), g.NewLabel()
	g.I(a64.LDRW, fTmp, fScr, a64.Imm(scrSmallest))
	g.Cmp(fTmp, positions)
	g.BC(a64.NotEqual, partial)
	g.softmaxEach(false)
	g.B(done)
	g.Bind(partial)
	g.softmaxEach(true)
	g.Bind(done)
}

// Registers of softmaxEach beside blocks.
const (
	fRow  = fA0     // scores of the row
	fLane = fA0 + 1 // entry of the row in the lane arrays of scratch
	fSeen = a64.V(24)
	fTop  = a64.V(25)
	fMul  = a64.V(26)
	fMask = a64.V(27)
	fInf  = a64.V(28)
)

// softmaxEach takes one row after the other. Masked, the lanes behind the last position that the
// row sees stay out of maximum and sum and become zero. A row that sees something has a maximum of
// at least `lowest`, one that sees nothing -Inf.
func (g *neonFused) softmaxEach(masked bool) {
	const x, n, z, p, acc = block(0), block(1), block(2), block(3), block(4)
	g.AddImm(fTmp, nArgs, offScale)
	g.I(a64.LD1R, fMul, fTmp)
	g.Splat(fInf, negInfBits)
	g.AddImm(fRow, fScr, scrP)
	g.MovX(fLane, fScr)
	g.MovImm(fPasses, g.Rows)
	g.Loop(fPasses, func() {
		if masked {
			g.AddImm(fTmp, fLane, scrSeen)
			g.I(a64.LD1R, fSeen, fTmp)
		}
		g.SplatF(fTop, lowest)
		each(func(i int) {
			if masked {
				g.Move(acc.v(i), fInf)
			} else {
				g.Move(acc.v(i), fTop)
			}
		})
		for j := range positions / group {
			g.AddImm(fTmp, fRow, 4*group*j)
			g.load(x, fTmp, false)
			each(func(i int) {
				v := x.v(i)
				if masked {
					g.Move(z.v(i), fTop)
					g.max(z.v(i), v, nConst)
					v = z.v(i)
					g.laneMask(group*j + 4*i)
					g.I(a64.BIF, v, fInf, fMask)
				}
				g.max(acc.v(i), v, nConst)
			})
		}
		g.maxLanes(acc)
		g.I(a64.FMUL, fTop, acc.v(0), fMul)
		g.I(a64.STRS, fTop, fLane, a64.Imm(scrMax))
		g.zero(acc)
		for j := range positions / group {
			g.AddImm(fTmp, fRow, 4*group*j)
			g.load(x, fTmp, false)
			g.opAll(a64.FMUL, x, x, fMul)
			g.opAll(a64.FSUB, x, x, fTop)
			g.exp(false, expOf(p, x, n, z))
			if masked {
				each(func(i int) {
					g.laneMask(group*j + 4*i)
					g.I(a64.ANDV, p.v(i), p.v(i), fMask)
				})
			}
			g.store(p, fTmp, false)
			g.op3(a64.FADD, acc, acc, p)
		}
		g.sumLanes(acc)
		g.I(a64.STRS, acc.v(0), fLane, a64.Imm(scrSum))
		g.AddImm(fRow, fRow, rowP)
		g.AddImm(fLane, fLane, 4)
	})
}

// laneMask makes the mask of the seen lanes of the vector that begins at a position.
func (g *neonFused) laneMask(position int) {
	g.laneNumbers(fMask, position)
	g.I(a64.CMGT4S, fMask, fSeen, fMask)
}

// mergeSums merges the maxima and sums of all rows, one lane a row, and leaves in scratch what the
// running output and the block's output are multiplied by. Rows whose block maximum is -Inf keep
// what they have.
func (g *neonFused) mergeSums() {
	m, mb, top, s, a := a64.V(0), a64.V(1), a64.V(2), a64.V(3), a64.V(4)
	b, x, y, keep := a64.V(5), a64.V(6), a64.V(7), a64.V(8)
	g.I(a64.LDRQ, m, fState, a64.Imm(StateMax))
	g.I(a64.LDRQ, mb, fScr, a64.Imm(scrMax))
	g.I(a64.LDRQ, s, fState, a64.Imm(StateSum))
	g.Move(top, m)
	g.max(top, mb, nConst)
	g.I(a64.FSUB, x, m, top)
	g.I(a64.FSUB, y, mb, top)
	g.exp(false, []neonExp{{p: a, x: x, n: 16, z: 17}, {p: b, x: y, n: 18, z: 19}})
	g.I(a64.STRQ, a, fScr, a64.Imm(scrOldMul))
	g.I(a64.STRQ, b, fScr, a64.Imm(scrNewMul))
	g.I(a64.LDRQ, x, fScr, a64.Imm(scrSum))
	g.I(a64.FMUL, x, x, b)
	g.I(a64.FMLA, x, s, a)
	g.Splat(keep, negInfBits)
	g.I(a64.FCMEQ, keep, mb, keep)
	g.I(a64.BIT, top, m, keep)
	g.I(a64.BIT, x, s, keep)
	g.I(a64.STRQ, top, fState, a64.Imm(StateMax))
	g.I(a64.STRQ, x, fState, a64.Imm(StateSum))
}
