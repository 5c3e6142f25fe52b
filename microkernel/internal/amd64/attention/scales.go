package attention

import (
	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/kernel"
)

// widenScales converts the scales of the block's keys and values to float32 in scratch. A block of
// int8 has a float16 scale for every position and 32 of its dimensions, after its elements; every
// element is multiplied by its scale, exactly, before it enters a chain. It overwrites aPtr, bPtr
// and count.
func (g *gen) widenScales() {
	n := g.ScaleFloats()
	if n == 0 {
		return
	}
	if g.integers() {
		g.widenValueScales()
		return
	}
	elements := positions * g.HeadDim
	g.Lea(bPtr, asm.At(scrReg, g.scalesAt()))
	for _, block := range []asm.Reg{kReg, vReg} {
		g.Lea(aPtr, asm.At(block, elements))
		g.MovImm(count, uint64(n/arith.Lanes))
		loop := g.Here()
		for h := range g.Parts {
			g.I(asm.VCVTPH2PS, g.V(h), asm.At(aPtr, g.PartOffset(h, 2)))
			g.I(asm.VMOVUPS, asm.At(bPtr, g.PartOffset(h, 4)), g.V(h))
		}
		g.Add(aPtr, asm.Imm32(2*arith.Lanes))
		g.Add(bPtr, asm.Imm32(4*arith.Lanes))
		g.Dec(count)
		g.Jcc(asm.NotZero, loop)
	}
}

// loadInt8 loads vector j of k-step i into register first+j, multiplied by its scale. The scales
// of keys are at the same distance from the scores for every panel, and those of values from the
// probabilities.
func (g *gen) loadInt8(p product, i, j, first int, m asm.Mem) {
	x := g.V(first + j)
	g.I(asm.VPMOVSXBD, x, m)
	g.I(asm.VCVTDQ2PS, x, x)
	if !p.scale.value {
		at := g.scalesAt() - kernel.ScratchScores + 4*positions*p.scale.set
		g.I(asm.VMULPS, x, x, asm.At(outPtr, at+j*x.Bytes()))
		return
	}
	set := (p.scale.set + j/g.Parts) * arith.Lanes / arith.ScaleDims
	scale := asm.At(aPtr, g.scalesAt()-kernel.ScratchScores+4*(g.ScaleFloats()+positions*set+i))
	if g.Wide {
		g.I(asm.VMULPS, x, x, scale.Bcast())
		return
	}
	t := g.V(first + p.columns*g.Parts)
	g.I(asm.VBROADCASTSS, t, scale)
	g.I(asm.VMULPS, x, x, t)
}

// widenValueScales converts the scales of the block's values to float32 in scratch. It overwrites
// aPtr, bPtr and count.
func (g *gen) widenValueScales() {
	g.Lea(aPtr, asm.At(vReg, positions*g.HeadDim))
	g.Lea(bPtr, asm.At(scrReg, g.valueScalesAt()))
	g.widenSets()
}

// widenSets converts the scales of all sets from aPtr to bPtr and advances both.
func (g *gen) widenSets() {
	g.MovImm(count, uint64(g.sets()))
	loop := g.Here()
	for i := range weightVectors {
		g.I(asm.VCVTPH2PS, g.V(i), asm.At(aPtr, 32*i))
	}
	for i := range weightVectors {
		g.I(asm.VMOVUPS, asm.At(bPtr, 64*i), g.V(i))
	}
	g.Add(aPtr, asm.Imm32(2*positions))
	g.Add(bPtr, asm.Imm32(4*positions))
	g.Dec(count)
	g.Jcc(asm.NotZero, loop)
}
