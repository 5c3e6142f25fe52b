package attention

import (
	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/amd64/lanes"
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/kernel"
)

// softmaxRows is OpSoftmax for rows of 64 in scratch. If every row sees all 64 positions, as in
// all blocks of a sequence but the last, it runs code without masks.
func (g *gen) softmaxRows() {
	g.Lea(smRow, asm.At(scrReg, kernel.ScratchScores))
	g.Mov(smLane, scrReg)
	done, partial := g.NewLabel(), g.NewLabel()
	g.Mov32(count, asm.At(scrReg, kernel.ScratchSmallest))
	g.Cmp(count, asm.Imm32(positions))
	g.Jcc(asm.NotZero, partial)
	if g.Wide {
		g.softmaxWhole()
	} else {
		g.softmaxEach(false)
	}
	g.Jmp(done)
	g.Bind(partial)
	g.softmaxEach(true)
	g.Bind(done)
}

const (
	smRow  = aPtr // scores of the row
	smLane = bPtr // entry of the row in the lane arrays of scratch
)

// softmaxWhole processes the rows in pairs, all lanes seen (AVX-512).
func (g *gen) softmaxWhole() {
	scale, lo := asm.Z(30), asm.Z(31)
	g.I(asm.VBROADCASTSS, scale, asm.At(args, offScale))
	g.SetF(lo, arith.ExpLo)
	if pairs := g.Rows / 2; pairs > 0 {
		g.MovImm(passes, uint64(pairs))
		g.loopPasses(func() { g.wholeRows(2, scale, lo) })
	}
	if g.Rows%2 > 0 {
		g.wholeRows(1, scale, lo)
	}
}

// wholeRows emits n interleaved rows: x in registers 0 to 7, then n of exp in 8 to 15 and p in 16
// to 23. The first register of each is a temporary of the reductions.
func (g *gen) wholeRows(n int, scale, lo asm.Vec) {
	const perRow = positions / arith.Lanes
	x, t, p, top := func(r, j int) asm.Vec { return asm.Z(perRow*r + j) }, 8, 16, 24
	all := func(f func(r, j int)) {
		for j := range perRow {
			for r := range n {
				f(r, j)
			}
		}
	}
	at := func(r, j int) asm.Mem { return asm.At(smRow, r*kernel.ScratchRow+64*j) }
	quarter := 0 // of the prefetches of these rows, which are spread over the steps
	prefetchQuarter := func() {
		lines := n * g.linesPerRow()
		g.prefetch(lines*(quarter+1)/4 - lines*quarter/4)
		quarter++
	}
	for r := range n {
		g.SetF(asm.Z(top+r), arith.LowestScore)
	}
	all(func(r, j int) {
		g.I(asm.VMOVUPS, x(r, j), at(r, j))
		g.I(asm.VMAXPS, asm.Z(top+r), x(r, j), asm.Z(top+r))
	})
	g.foldRows(n, top, t, func(dst, low, high asm.Vec) { g.I(asm.VMAXPS, dst, high, low) })
	for r := range n {
		m := asm.X(top + r)
		g.I(asm.VMULSS, m, m, scale.X())
		g.I(asm.VMOVSS, asm.At(smLane, kernel.ScratchMax+4*r), m)
		g.I(asm.VBROADCASTSS, asm.Z(top+r), m)
	}
	prefetchQuarter()
	all(func(r, j int) { g.I(asm.VMULPS, x(r, j), x(r, j), scale) })
	all(func(r, j int) { g.I(asm.VSUBPS, x(r, j), x(r, j), asm.Z(top+r)) })
	var exps []lanes.ExpRegs
	all(func(r, j int) {
		i := perRow*r + j
		exps = append(exps, lanes.ExpRegs{Dst: asm.Z(p + i), P: asm.Z(p + i), X: x(r, j), N: asm.Z(t + i)})
	})
	prefetchQuarter()
	g.ExpMany(lo, nil, exps...)
	prefetchQuarter()
	all(func(r, j int) { g.I(asm.VMOVUPS, at(r, j), asm.Z(p+perRow*r+j)) })
	for j := 1; j < perRow; j++ {
		for r := range n {
			sum := asm.Z(top + r)
			if j == 1 {
				g.I(asm.VADDPS, sum, asm.Z(p+perRow*r), asm.Z(p+perRow*r+1)) // 0 + p is p: it is never -0
				continue
			}
			g.I(asm.VADDPS, sum, sum, asm.Z(p+perRow*r+j))
		}
	}
	prefetchQuarter()
	g.foldRows(n, top, t, func(dst, low, high asm.Vec) { g.I(asm.VADDPS, dst, low, high) })
	for r := range n {
		g.I(asm.VMOVSS, asm.At(smLane, kernel.ScratchSum+4*r), asm.X(top+r))
	}
	g.Add(smRow, asm.Imm32(int32(n*kernel.ScratchRow)))
	g.Add(smLane, asm.Imm32(int32(4*n)))
}

// foldRows reduces the accumulators acc to acc+n-1, interleaved, with t to t+n-1 as temporaries.
func (g *gen) foldRows(n, acc, t int, op func(dst, low, high asm.Vec)) {
	each := func(f func(a, t asm.Vec)) {
		for r := range n {
			f(asm.Z(acc+r), asm.Z(t+r))
		}
	}
	each(func(a, t asm.Vec) { g.I(asm.VEXTRACTF64X4, t.Y(), a, asm.Imm(1)) })
	each(func(a, t asm.Vec) { op(a.Y(), a.Y(), t.Y()) })
	each(func(a, t asm.Vec) { g.I(asm.VEXTRACTF32X4, t.X(), a.Y(), asm.Imm(1)) })
	each(func(a, t asm.Vec) { op(a.X(), a.X(), t.X()) })
	each(func(a, t asm.Vec) { g.I(asm.VMOVHLPS, t.X(), a.X(), a.X()) })
	each(func(a, t asm.Vec) { op(a.X(), a.X(), t.X()) })
	each(func(a, t asm.Vec) { g.I(asm.VMOVSHDUP, t.X(), a.X()) })
	each(func(a, t asm.Vec) { op(a.X(), a.X(), t.X()) })
}

// Registers of softmaxEach. With AVX-512 the masks of the vectors of a row are k3 and up.
const (
	smX     = 0 // two of each of the four
	smN     = 2
	smZ     = 4
	smP     = 6
	smScale = 8
	smTop   = 9
	smLo    = 10
	smAcc   = 11 // and 12 with AVX2
	smInf   = 13
	smMask  = 14
	smT     = 15
)

// softmaxEach processes one row at a time, two vectors interleaved. Masked, the lanes after the
// last position that the row sees are excluded from maximum and sum and become zero; unmasked code
// is for AVX2. A row that sees a position has a maximum of at least arith.LowestScore, another one
// -Inf.
func (g *gen) softmaxEach(masked bool) {
	vectors := positions / arith.Lanes * g.Parts
	g.I(asm.VBROADCASTSS, g.V(smScale), asm.At(args, offScale))
	g.SetF(g.V(smLo), arith.ExpLo)
	g.SetF(g.V(smInf), negInf)
	if !masked {
		g.SetF(g.V(smInf), arith.LowestScore)
	}
	g.MovImm(passes, uint64(g.Rows))
	g.loopPasses(func() {
		for h := range g.Parts {
			g.I(asm.VMOVUPS, g.V(smAcc+h), g.V(smInf))
		}
		for j := range vectors {
			g.rowMaxStep(j, masked)
		}
		g.MaxLanes(smAcc, smT)
		top := asm.X(smAcc)
		g.I(asm.VMULSS, top, top, asm.X(smScale))
		g.I(asm.VMOVSS, asm.At(smLane, kernel.ScratchMax), top)
		g.I(asm.VBROADCASTSS, g.V(smTop), top)
		g.Zero(smAcc)
		g.Zero(smAcc + 1)
		for j := 0; j < vectors; j += 2 {
			g.rowExpSteps(j, masked)
		}
		g.prefetch(g.linesPerRow())
		g.SumLanes(smAcc, smT)
		g.I(asm.VMOVSS, asm.At(smLane, kernel.ScratchSum), asm.X(smAcc))
		g.Add(smRow, asm.Imm32(kernel.ScratchRow))
		g.Add(smLane, asm.Imm32(4))
	})
}

// vector returns vector j of the row.
func (g *gen) vector(j int) asm.Mem { return asm.At(smRow, j*g.V(0).Bytes()) }

// laneMask sets the mask of the seen lanes of vector j: an opmask, or smMask with AVX2.
func (g *gen) laneMask(j int) asm.Mask {
	k := asm.K3 + asm.Mask(j)
	g.I(asm.VPBROADCASTD, g.V(smMask), asm.At(smLane, kernel.ScratchSeen))
	if g.Wide {
		g.I(asm.VPCMPDK, k, g.V(smMask), g.laneIndex(j), asm.Imm(6)) // seen > index
		return k
	}
	g.I(asm.VPCMPGTD, g.V(smMask), g.V(smMask), g.laneIndex(j))
	return asm.K0
}

func (g *gen) rowMaxStep(j int, masked bool) {
	acc, x := g.V(smAcc+j%g.Parts), g.V(smX)
	g.I(asm.VMOVUPS, x, g.vector(j))
	dst := acc
	if masked {
		k := g.laneMask(j)
		g.I(asm.VMAXPS, x, x, g.SplatF(arith.LowestScore))
		if g.Wide {
			dst = acc.K(k)
		} else {
			g.I(asm.VBLENDVPS, x, g.V(smInf), x, g.V(smMask))
		}
	}
	g.I(asm.VMAXPS, dst, x, acc)
}

// rowExpSteps converts vectors j and j+1 to probabilities and adds them to the lanes.
func (g *gen) rowExpSteps(j int, masked bool) {
	var exps []lanes.ExpRegs
	for i := range 2 {
		e := lanes.ExpRegs{P: g.V(smP + i), X: g.V(smX + i), N: g.V(smN + i), Z: g.V(smZ + i)}
		e.Dst = e.P
		if g.Wide && masked {
			e.Dst = e.P.KZ(asm.K3 + asm.Mask(j+i)) // made by rowMaxStep
		}
		g.I(asm.VMULPS, e.X, g.V(smScale), g.vector(j+i))
		g.I(asm.VSUBPS, e.X, e.X, g.V(smTop))
		exps = append(exps, e)
	}
	g.ExpMany(g.V(smLo), nil, exps...)
	for i, e := range exps {
		if !g.Wide && masked {
			g.laneMask(j + i)
			g.I(asm.VANDPS, e.P, e.P, g.V(smMask))
		}
		g.I(asm.VMOVUPS, g.vector(j+i), e.P)
		acc := g.V(smAcc + (j+i)%g.Parts)
		g.I(asm.VADDPS, acc, acc, e.P)
	}
}

// laneIndex returns a constant of the position numbers in vector j of a row.
func (g *gen) laneIndex(j int) asm.Mem {
	w := make([]uint32, g.V(0).Bytes()/4)
	for i := range w {
		w[i] = uint32(j*len(w) + i)
	}
	return g.ConstU32s(w...)
}
