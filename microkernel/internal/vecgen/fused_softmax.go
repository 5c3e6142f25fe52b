package vecgen

import "sandwich/microkernel/internal/amd64/asm"

// softmaxRows is the Softmax kernel for rows of 64 in scratch. All blocks of a sequence but the
// last are seen whole by its last token: when every row sees all 64 positions there is code without
// masks.
func (g *fused) softmaxRows() {
	g.Lea(smRow, asm.At(scrReg, scrP))
	g.Mov(smLane, scrReg)
	done, partial := g.NewLabel(), g.NewLabel()
	g.Mov32(count, asm.At(scrReg, scrSmallest))
	g.Cmp(count, asm.Imm32(positions))
	g.Jcc(asm.NotZero, partial)
	if g.wide {
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

// softmaxWhole takes the rows in pairs, all lanes seen (AVX-512).
func (g *fused) softmaxWhole() {
	scale, lo := asm.Z(30), asm.Z(31)
	g.I(asm.VBROADCASTSS, scale, asm.At(args, offScale))
	g.setF(lo, expLo)
	if pairs := g.Rows / 2; pairs > 0 {
		g.MovImm(passes, uint64(pairs))
		g.loopPasses(func() { g.wholeRows(2, scale, lo) })
	}
	if g.Rows%2 > 0 {
		g.wholeRows(1, scale, lo)
	}
}

// wholeRows emits n rows side by side: x in registers 0 to 7, then n of exp in 8 to 15 and p in 16
// to 23; the first of each is scratch of the reductions before and after.
func (g *fused) wholeRows(n int, scale, lo asm.Vec) {
	const perRow = positions / group
	x, t, p, top := func(r, j int) asm.Vec { return asm.Z(perRow*r + j) }, 8, 16, 24
	all := func(f func(r, j int)) {
		for j := range perRow {
			for r := range n {
				f(r, j)
			}
		}
	}
	at := func(r, j int) asm.Mem { return asm.At(smRow, r*rowP+64*j) }
	quarter := 0
	drip := func() { // the prefetches of these rows come in four parts
		lines := n * g.linesPerRow()
		g.prefetch(lines*(quarter+1)/4 - lines*quarter/4)
		quarter++
	}
	for r := range n {
		g.setF(asm.Z(top+r), lowest)
	}
	all(func(r, j int) {
		g.I(asm.VMOVUPS, x(r, j), at(r, j))
		g.I(asm.VMAXPS, asm.Z(top+r), x(r, j), asm.Z(top+r))
	})
	g.foldRows(n, top, t, func(dst, low, high asm.Vec) { g.I(asm.VMAXPS, dst, high, low) })
	for r := range n {
		m := asm.X(top + r)
		g.I(asm.VMULSS, m, m, scale.X())
		g.I(asm.VMOVSS, asm.At(smLane, scrMax+4*r), m)
		g.I(asm.VBROADCASTSS, asm.Z(top+r), m)
	}
	drip()
	all(func(r, j int) { g.I(asm.VMULPS, x(r, j), x(r, j), scale) })
	all(func(r, j int) { g.I(asm.VSUBPS, x(r, j), x(r, j), asm.Z(top+r)) })
	var exps []expRegs
	all(func(r, j int) {
		i := perRow*r + j
		exps = append(exps, expRegs{dst: asm.Z(p + i), p: asm.Z(p + i), x: x(r, j), n: asm.Z(t + i)})
	})
	drip()
	g.expMany(lo, nil, exps...)
	drip()
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
	drip()
	g.foldRows(n, top, t, func(dst, low, high asm.Vec) { g.I(asm.VADDPS, dst, low, high) })
	for r := range n {
		g.I(asm.VMOVSS, asm.At(smLane, scrSum+4*r), asm.X(top+r))
	}
	g.Add(smRow, asm.Imm32(int32(n*rowP)))
	g.Add(smLane, asm.Imm32(int32(4*n)))
}

// foldRows is fold for the accumulators acc to acc+n-1, side by side, with t to t+n-1 as scratch.
func (g *fused) foldRows(n, acc, t int, op func(dst, low, high asm.Vec)) {
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

// softmaxEach takes one row after the other, two vectors side by side. Masked, the lanes behind the
// last position that the row sees stay out of maximum and sum and become zero; unmasked it is for
// AVX2. A row that sees something has a maximum of at least `lowest`: one that sees nothing has
// -Inf.
func (g *fused) softmaxEach(masked bool) {
	vectors := positions / group * g.parts
	g.I(asm.VBROADCASTSS, g.v(smScale), asm.At(args, offScale))
	g.setF(g.v(smLo), expLo)
	g.setF(g.v(smInf), negInf)
	if !masked {
		g.setF(g.v(smInf), lowest)
	}
	g.MovImm(passes, uint64(g.Rows))
	g.loopPasses(func() {
		for h := range g.parts {
			g.I(asm.VMOVUPS, g.v(smAcc+h), g.v(smInf))
		}
		for j := range vectors {
			g.rowMaxStep(j, masked)
		}
		g.maxLanes(smAcc, smT)
		top := asm.X(smAcc)
		g.I(asm.VMULSS, top, top, asm.X(smScale))
		g.I(asm.VMOVSS, asm.At(smLane, scrMax), top)
		g.I(asm.VBROADCASTSS, g.v(smTop), top)
		g.zero(smAcc)
		g.zero(smAcc + 1)
		for j := 0; j < vectors; j += 2 {
			g.rowExpSteps(j, masked)
		}
		g.prefetch(g.linesPerRow())
		g.sumLanes(smAcc, smT)
		g.I(asm.VMOVSS, asm.At(smLane, scrSum), asm.X(smAcc))
		g.Add(smRow, asm.Imm32(rowP))
		g.Add(smLane, asm.Imm32(4))
	})
}

// vector is vector j of the row.
func (g *fused) vector(j int) asm.Mem { return asm.At(smRow, j*g.v(0).Bytes()) }

// laneMask makes the mask of the seen lanes of vector j: an opmask, or smMask with AVX2.
func (g *fused) laneMask(j int) asm.Mask {
	k := asm.K3 + asm.Mask(j)
	g.I(asm.VPBROADCASTD, g.v(smMask), asm.At(smLane, scrSeen))
	if g.wide {
		g.I(asm.VPCMPDK, k, g.v(smMask), g.laneIndex(j), asm.Imm(6)) // seen > index
		return k
	}
	g.I(asm.VPCMPGTD, g.v(smMask), g.v(smMask), g.laneIndex(j))
	return asm.K0
}

func (g *fused) rowMaxStep(j int, masked bool) {
	acc, x := g.v(smAcc+j%g.parts), g.v(smX)
	g.I(asm.VMOVUPS, x, g.vector(j))
	dst := acc
	if masked {
		k := g.laneMask(j)
		g.I(asm.VMAXPS, x, x, g.splatF(lowest))
		if g.wide {
			dst = acc.K(k)
		} else {
			g.I(asm.VBLENDVPS, x, g.v(smInf), x, g.v(smMask))
		}
	}
	g.I(asm.VMAXPS, dst, x, acc)
}

// rowExpSteps turns vectors j and j+1 into probabilities and adds them to the lanes.
func (g *fused) rowExpSteps(j int, masked bool) {
	var exps []expRegs
	for i := range 2 {
		e := expRegs{p: g.v(smP + i), x: g.v(smX + i), n: g.v(smN + i), z: g.v(smZ + i)}
		e.dst = e.p
		if g.wide && masked {
			e.dst = e.p.KZ(asm.K3 + asm.Mask(j+i)) // made by rowMaxStep
		}
		g.I(asm.VMULPS, e.x, g.v(smScale), g.vector(j+i))
		g.I(asm.VSUBPS, e.x, e.x, g.v(smTop))
		exps = append(exps, e)
	}
	g.expMany(g.v(smLo), nil, exps...)
	for i, e := range exps {
		if !g.wide && masked {
			g.laneMask(j + i)
			g.I(asm.VANDPS, e.p, e.p, g.v(smMask))
		}
		g.I(asm.VMOVUPS, g.vector(j+i), e.p)
		acc := g.v(smAcc + (j+i)%g.parts)
		g.I(asm.VADDPS, acc, acc, e.p)
	}
}

// laneIndex is a constant with the numbers of the positions in vector j of a row.
func (g *fused) laneIndex(j int) asm.Mem {
	w := make([]uint32, g.v(0).Bytes()/4)
	for i := range w {
		w[i] = uint32(j*len(w) + i)
	}
	return g.ConstU32s(w...)
}

// mergeSums merges the maxima and sums of all rows, one lane a row, and leaves in scratch what the
// running output and the block's output are multiplied by. Rows whose block maximum is -Inf keep
// what they have.
func (g *fused) mergeSums() {
	const m, mb, top, s, a, b, n, z, x, mask = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
	r := expRange{lo: 10, hi: -1}
	g.setExpRange(r)
	g.I(asm.VMOVUPS, g.v(m), asm.At(stateReg, StateMax))
	g.I(asm.VMOVUPS, g.v(mb), asm.At(scrReg, scrMax))
	g.I(asm.VMOVUPS, g.v(s), asm.At(stateReg, StateSum))
	g.I(asm.VMAXPS, g.v(top), g.v(mb), g.v(m))
	g.I(asm.VSUBPS, g.v(x), g.v(m), g.v(top))
	g.exp(a, x, n, z, r)
	g.I(asm.VSUBPS, g.v(x), g.v(mb), g.v(top))
	g.exp(b, x, n, z, r)
	g.I(asm.VMOVUPS, asm.At(scrReg, scrOldMul), g.v(a))
	g.I(asm.VMOVUPS, asm.At(scrReg, scrNewMul), g.v(b))
	g.I(asm.VMULPS, g.v(x), g.v(b), asm.At(scrReg, scrSum))
	g.I(asm.VFMADD231PS, g.v(x), g.v(s), g.v(a))
	if g.wide {
		g.I(asm.VCMPPSK, asm.K1, g.v(mb), g.splatF(negInf), asm.Imm(4)) // not equal, true for NaN
		g.I(asm.VMOVUPS, asm.At(stateReg, StateMax).K(asm.K1), g.v(top))
		g.I(asm.VMOVUPS, asm.At(stateReg, StateSum).K(asm.K1), g.v(x))
		return
	}
	g.I(asm.VCMPPS, g.v(mask), g.v(mb), g.splatF(negInf), asm.Imm(4))
	g.I(asm.VBLENDVPS, g.v(top), g.v(m), g.v(top), g.v(mask))
	g.I(asm.VBLENDVPS, g.v(x), g.v(s), g.v(x), g.v(mask))
	g.I(asm.VMOVUPS, asm.At(stateReg, StateMax), g.v(top))
	g.I(asm.VMOVUPS, asm.At(stateReg, StateSum), g.v(x))
}
