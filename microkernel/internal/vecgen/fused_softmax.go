package vecgen

import "sandwich/microkernel/internal/asm"

// Registers of softmaxRows.
const (
	smAcc   = 0 // and 1 with AVX2
	smT     = 2
	smX     = 3
	smP     = 4
	smN     = 5
	smZ     = 6
	smScale = 7
	smTop   = 8
	smSeen  = 9
	smLo    = 10
	smInf   = 11
	smMask  = 12 // AVX2; with AVX-512 the masks of the vectors of a row are k3 and up

	smRow  = aPtr // scores of the row
	smLane = bPtr // entry of the row in the lane arrays of scratch
)

// softmaxRows is the Softmax kernel for rows of 64 in scratch. All blocks of a sequence but the last are seen whole by
// its last token: rows that see 64 positions have code without masks.
func (g *fused) softmaxRows() {
	g.I(asm.VBROADCASTSS, g.v(smScale), asm.At(args, offScale))
	g.setExpRange(expRange{lo: smLo, hi: -1})
	g.setF(g.v(smInf), negInf)
	g.Lea(smRow, asm.At(scrReg, scrP))
	g.Mov(smLane, scrReg)
	g.MovImm(passes, uint64(g.Rows))
	partial, next := g.NewLabel(), g.NewLabel()
	loop := g.Here()
	g.Mov32(count, asm.At(smLane, scrSeen))
	g.Cmp(count, asm.Imm32(positions))
	g.Jcc(asm.NotZero, partial)
	g.softmaxRow(false)
	g.Jmp(next)
	g.Bind(partial)
	g.softmaxRow(true)
	g.Bind(next)
	g.Add(smRow, asm.Imm32(rowP))
	g.Add(smLane, asm.Imm32(4))
	g.Dec(passes)
	g.Jcc(asm.NotZero, loop)
}

// softmaxRow emits one row; masked keeps the lanes behind the last seen position out of it and makes them zero.
func (g *fused) softmaxRow(masked bool) {
	vectors := positions / group * g.parts
	if masked {
		g.I(asm.VPBROADCASTD, g.v(smSeen), asm.At(smLane, scrSeen))
	}
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
	for j := range vectors {
		g.rowExpStep(j, masked)
		g.prefetch(share(g.linesPerRow(), j, vectors))
	}
	g.sumLanes(smAcc, smT)
	g.I(asm.VMOVSS, asm.At(smLane, scrSum), asm.X(smAcc))
}

// vector is vector j of the row.
func (g *fused) vector(j int) asm.Mem { return asm.At(smRow, j*g.v(0).Bytes()) }

func (g *fused) rowMaxStep(j int, masked bool) {
	acc, k := g.v(smAcc+j%g.parts), asm.K3+asm.Mask(j)
	g.I(asm.VMOVUPS, g.v(smX), g.vector(j))
	switch {
	case !masked:
	case g.wide:
		g.I(asm.VPCMPDK, k, g.v(smSeen), g.laneIndex(j), asm.Imm(6)) // seen > index
		acc = acc.K(k)
	default:
		g.I(asm.VPCMPGTD, g.v(smMask), g.v(smSeen), g.laneIndex(j))
		g.I(asm.VBLENDVPS, g.v(smX), g.v(smInf), g.v(smX), g.v(smMask))
	}
	g.I(asm.VMAXPS, acc, g.v(smX), g.v(smAcc+j%g.parts))
}

func (g *fused) rowExpStep(j int, masked bool) {
	p, x, acc := g.v(smP), g.v(smX), g.v(smAcc+j%g.parts)
	g.I(asm.VMULPS, x, g.v(smScale), g.vector(j))
	g.I(asm.VSUBPS, x, x, g.v(smTop))
	dst := p
	if masked && g.wide {
		dst = p.KZ(asm.K3 + asm.Mask(j))
	}
	g.expAt(dst, p, x, g.v(smN), g.v(smZ), g.v(smLo), nil)
	if masked && !g.wide {
		g.I(asm.VPCMPGTD, g.v(smMask), g.v(smSeen), g.laneIndex(j))
		g.I(asm.VANDPS, p, p, g.v(smMask))
	}
	g.I(asm.VMOVUPS, g.vector(j), p)
	g.I(asm.VADDPS, acc, acc, p)
}

// share is part i of n of a total: the parts differ by one at most.
func share(total, i, n int) int { return (i+1)*total/n - i*total/n }

// laneIndex is a constant with the numbers of the positions in vector j of a row.
func (g *fused) laneIndex(j int) asm.Mem {
	w := make([]uint32, g.v(0).Bytes()/4)
	for i := range w {
		w[i] = uint32(j*len(w) + i)
	}
	return g.ConstU32s(w...)
}

// mergeSums merges the maxima and sums of all rows, one lane a row, and leaves in scratch what the running output and the
// block's output are multiplied by. Rows whose block maximum is -Inf keep what they have.
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
