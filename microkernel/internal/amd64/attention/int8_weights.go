package attention

import (
	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/kernel"
)

// Registers of integerWeights: four vectors of probabilities, four of weights for each of
// weightSets sets, the largest weight of each set, and temporaries.
const (
	weightP       = 0
	weightW       = 4
	weightMost    = 20
	weightT       = 24
	weightLeast   = 30
	weightVectors = positions / arith.Lanes
)

// integerWeights quantizes the probabilities of all rows, multiplied by the scales of values of
// each set. aPtr points to the probabilities of a row, bPtr to the integers, kReg to their scales.
func (g *gen) integerWeights() {
	g.SetF(g.V(weightLeast), arith.LeastWeight)
	g.Lea(aPtr, asm.At(scrReg, kernel.ScratchScores))
	g.Lea(bPtr, asm.At(scrReg, g.weightsAt()))
	g.Lea(kReg, asm.At(scrReg, g.weightScalesAt()))
	g.MovImm(passes, uint64(g.Rows))
	g.loopPasses(func() {
		for i := range weightVectors {
			g.I(asm.VMOVUPS, g.V(weightP+i), asm.At(aPtr, 64*i))
		}
		for first := 0; first < g.sets(); first += weightSets {
			g.quantizeSets(first, min(weightSets, g.sets()-first))
		}
		g.prefetch(g.integerRest()/g.Rows - g.linesPerRow())
		g.Add(aPtr, asm.Imm32(kernel.ScratchRow))
		g.Add(bPtr, asm.Imm32(int32(positions*g.sets())))
		g.Add(kReg, asm.Imm32(int32(g.weightScaleRow())))
	})
}

// quantizeSets quantizes the weights of a row for n sets starting at `first`. VMAXPS ignores NaN,
// and packing converts it to 0.
func (g *gen) quantizeSets(first, n int) {
	w := func(set, i int) asm.Vec { return g.V(weightW + weightVectors*set + i) }
	scales, at := scrReg, g.valueScalesAt()
	if g.Opened {
		scales, at = vReg, positions*g.HeadDim
	}
	for set := range n {
		for i := range weightVectors {
			g.I(asm.VMULPS, w(set, i), g.V(weightP+i), asm.At(scales, at+4*(positions*(first+set)+arith.Lanes*i)))
		}
	}
	for set := range n {
		most := g.V(weightMost + set)
		g.I(asm.VMAXPS, most, w(set, 0), g.V(weightLeast))
		for i := 1; i < weightVectors; i++ {
			g.I(asm.VMAXPS, most, w(set, i), most)
		}
	}
	most := g.largestOf(n)
	inverse := asm.X(weightT)
	g.I(asm.VBROADCASTSS, inverse, g.ConstF32(arith.ProbabilityTop))
	g.I(asm.VDIVPS, inverse, inverse, most)
	g.I(asm.VMOVUPS, asm.At(scrReg, g.inversesAt()), inverse)
	g.I(asm.VMULPS, most, most, g.ConstF32(arith.ProbabilityStep).Bcast())
	g.I(asm.VMOVUPS, asm.At(kReg, 4*first), most)
	for set := range n {
		for i := range weightVectors {
			g.I(asm.VMULPS, w(set, i), w(set, i), asm.At(scrReg, g.inversesAt()+4*set).Bcast())
		}
	}
	for set := range n {
		for i := range weightVectors {
			g.I(asm.VCVTPS2DQ, w(set, i), w(set, i))
		}
	}
	for set := range n {
		g.I(asm.VPACKSSDW, w(set, 0), w(set, 0), w(set, 1))
		g.I(asm.VPACKSSDW, w(set, 2), w(set, 2), w(set, 3))
		g.I(asm.VPACKUSWB, w(set, 0), w(set, 0), w(set, 2))
		g.I(asm.VMOVUPS, asm.At(bPtr, positions*(first+set)), w(set, 0))
	}
}

// largestOf reduces the largest weights of n sets to one lane per set of the register it returns;
// lanes without a set repeat others.
func (g *gen) largestOf(n int) asm.Vec {
	most := func(set int) asm.Vec { return g.V(weightMost + min(set, n-1)) }
	t := g.V(weightT + 1)
	pair := func(dst asm.Vec, a, b asm.Vec) {
		g.I(asm.VUNPCKLPS, t, a, b)
		g.I(asm.VUNPCKHPS, dst, a, b)
		g.I(asm.VMAXPS, dst, dst, t)
	}
	low, high := g.V(weightT+2), g.V(weightT+3)
	pair(low, most(0), most(1))
	if n > 2 {
		pair(high, most(2), most(3))
	} else {
		high = low
	}
	all := g.V(weightMost)
	g.I(asm.VSHUFPS, t, low, high, asm.Imm(0x44))
	g.I(asm.VSHUFPS, all, low, high, asm.Imm(0xee))
	g.I(asm.VMAXPS, all, all, t)
	g.I(asm.VEXTRACTF64X4, t.Y(), all, asm.Imm(1))
	g.I(asm.VMAXPS, all.Y(), all.Y(), t.Y())
	g.I(asm.VEXTRACTF32X4, t.X(), all.Y(), asm.Imm(1))
	g.I(asm.VMAXPS, all.X(), all.X(), t.X())
	return all.X()
}
