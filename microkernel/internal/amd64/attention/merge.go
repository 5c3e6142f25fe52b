package attention

import (
	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/amd64/lanes"
	"sandwich/microkernel/internal/kernel"
)

// mergeRows merges the accumulators of a value pass into the output rows: out = out*old + (acc +
// 0)*new.
func (g *gen) mergeRows(columns int) {
	vectors := columns * g.Parts
	first := g.Rows * vectors
	oldMul, newMul, zero := g.V(first), g.V(first+1), g.V(first+2)
	g.Zero(first + 2)
	g.seeingRows(oldMul, newMul, func(r int) {
		for j := range vectors {
			acc, out := g.V(r*vectors+j), asm.At(outPtr, 4*r*g.PaddedDim()+j*g.V(0).Bytes())
			g.I(asm.VADDPS, acc, acc, zero)
			g.mergeInto(out, acc, oldMul, newMul)
		}
	})
}

// seeingRows runs merge for the rows that see a position of the block, with the factors of their
// running output and of the block's output in all lanes. It overwrites aPtr.
func (g *gen) seeingRows(oldMul, newMul asm.Vec, merge func(r int)) {
	for r := range g.Rows {
		skip := g.NewLabel()
		g.CmpNegInf(asm.At(scrReg, kernel.ScratchMax+4*r), aPtr)
		g.Jcc(asm.Zero, skip)
		g.I(asm.VBROADCASTSS, oldMul, asm.At(scrReg, kernel.ScratchOldMul+4*r))
		g.I(asm.VBROADCASTSS, newMul, asm.At(scrReg, kernel.ScratchNewMul+4*r))
		merge(r)
		g.Bind(skip)
	}
}

// mergeInto merges a vector of the block's output into the running output.
func (g *gen) mergeInto(out asm.Mem, acc, oldMul, newMul asm.Vec) {
	g.I(asm.VMULPS, acc, acc, newMul)
	g.I(asm.VFMADD231PS, acc, oldMul, out)
	g.I(asm.VMOVUPS, out, acc)
}

// mergeStored is mergeRows for sums in memory.
func (g *gen) mergeStored(panels int, sum func(r, p int) asm.Mem) {
	const zero = 30
	oldMul, newMul := g.V(28), g.V(29)
	g.Zero(zero)
	g.seeingRows(oldMul, newMul, func(r int) {
		for p := range panels {
			acc := g.V((r*panels + p) % 16)
			g.I(asm.VADDPS, acc, g.V(zero), sum(r, p))
			g.mergeInto(asm.At(outPtr, 4*r*g.PaddedDim()+64*p), acc, oldMul, newMul)
		}
	})
}

// mergeSums merges the maxima and sums of all rows, one lane per row, and stores the factors of
// the running output and of the block's output in scratch. Rows whose block maximum is -Inf are
// unchanged.
func (g *gen) mergeSums() {
	const m, mb, top, s, a, b, n, z, x, mask = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
	r := lanes.ExpRange{Lo: 10, Hi: -1}
	g.SetExpRange(r)
	g.I(asm.VMOVUPS, g.V(m), asm.At(stateReg, kernel.StateMax))
	g.I(asm.VMOVUPS, g.V(mb), asm.At(scrReg, kernel.ScratchMax))
	g.I(asm.VMOVUPS, g.V(s), asm.At(stateReg, kernel.StateSum))
	g.I(asm.VMAXPS, g.V(top), g.V(mb), g.V(m))
	g.I(asm.VSUBPS, g.V(x), g.V(m), g.V(top))
	g.Exp(a, x, n, z, r)
	g.I(asm.VSUBPS, g.V(x), g.V(mb), g.V(top))
	g.Exp(b, x, n, z, r)
	g.I(asm.VMOVUPS, asm.At(scrReg, kernel.ScratchOldMul), g.V(a))
	g.I(asm.VMOVUPS, asm.At(scrReg, kernel.ScratchNewMul), g.V(b))
	g.I(asm.VMULPS, g.V(x), g.V(b), asm.At(scrReg, kernel.ScratchSum))
	g.I(asm.VFMADD231PS, g.V(x), g.V(s), g.V(a))
	if g.Wide {
		g.I(asm.VCMPPSK, asm.K1, g.V(mb), g.SplatF(negInf), asm.Imm(4)) // not equal, true for NaN
		g.I(asm.VMOVUPS, asm.At(stateReg, kernel.StateMax).K(asm.K1), g.V(top))
		g.I(asm.VMOVUPS, asm.At(stateReg, kernel.StateSum).K(asm.K1), g.V(x))
		return
	}
	g.I(asm.VCMPPS, g.V(mask), g.V(mb), g.SplatF(negInf), asm.Imm(4))
	g.I(asm.VBLENDVPS, g.V(top), g.V(m), g.V(top), g.V(mask))
	g.I(asm.VBLENDVPS, g.V(x), g.V(s), g.V(x), g.V(mask))
	g.I(asm.VMOVUPS, asm.At(stateReg, kernel.StateMax), g.V(top))
	g.I(asm.VMOVUPS, asm.At(stateReg, kernel.StateSum), g.V(x))
}

// mergeTiles is mergeRows for the sums that storeTiles stores.
func (g *gen) mergeTiles(panels int) {
	g.mergeStored(panels, func(r, p int) asm.Mem {
		return asm.At(scrReg, kernel.ScratchScores+r*kernel.ScratchRow+64*p)
	})
}

// mergeIntegers is mergeRows for integer sums, which are never -0.
func (g *gen) mergeIntegers() {
	oldMul, newMul := g.V(g.Rows*setPanels), g.V(g.Rows*setPanels+1)
	g.seeingRows(oldMul, newMul, func(r int) {
		scale := asm.AtIndex(scrReg, kReg, 1, g.weightScalesAt()+r*g.weightScaleRow())
		for j := range setPanels {
			acc := g.V(r*setPanels + j)
			g.I(asm.VCVTDQ2PS, acc, acc)
			g.I(asm.VMULPS, acc, acc, scale.Bcast())
			g.mergeInto(asm.At(outPtr, 4*r*g.PaddedDim()+64*j), acc, oldMul, newMul)
		}
	})
}
