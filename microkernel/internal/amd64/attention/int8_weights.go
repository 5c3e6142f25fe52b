package attention

import (
	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/kernel"
)

// Registers of integerChances: four vectors of probabilities, four of weights for each of
// weightSets sets, the largest of each, and scratch.
const (
	chanceP       = 0
	chanceW       = 4
	chanceMost    = 20
	chanceT       = 24
	chanceLeast   = 30
	chanceVectors = positions / arith.Lanes
)

// integerChances makes integers of the probabilities of all rows, times the scales of values of
// each set: aPtr walks over the rows' probabilities, bPtr over the integers, kReg over the scales
// that belong to them.
func (g *gen) integerChances() {
	g.SetF(g.V(chanceLeast), arith.LeastWeight)
	g.Lea(aPtr, asm.At(scrReg, kernel.ScratchScores))
	g.Lea(bPtr, asm.At(scrReg, g.weightsAt()))
	g.Lea(kReg, asm.At(scrReg, g.weightScalesAt()))
	g.MovImm(passes, uint64(g.Rows))
	g.loopPasses(func() {
		for i := range chanceVectors {
			g.I(asm.VMOVUPS, g.V(chanceP+i), asm.At(aPtr, 64*i))
		}
		for first := 0; first < g.sets(); first += weightSets {
			g.chancesOf(first, min(weightSets, g.sets()-first))
		}
		g.prefetch(g.integerRest()/g.Rows - g.linesPerRow())
		g.Add(aPtr, asm.Imm32(kernel.ScratchRow))
		g.Add(bPtr, asm.Imm32(int32(positions*g.sets())))
		g.Add(kReg, asm.Imm32(int32(g.weightScaleRow())))
	})
}

// chancesOf makes the integers of a row for n sets from `first` on. Of a weight that is no number
// VMAXPS takes the other source and packing makes 0.
func (g *gen) chancesOf(first, n int) {
	w := func(set, i int) asm.Vec { return g.V(chanceW + chanceVectors*set + i) }
	scales, at := scrReg, g.valueScalesAt()
	if g.Opened {
		scales, at = vReg, positions*g.HeadDim
	}
	for set := range n {
		for i := range chanceVectors {
			g.I(asm.VMULPS, w(set, i), g.V(chanceP+i), asm.At(scales, at+4*(positions*(first+set)+arith.Lanes*i)))
		}
	}
	for set := range n {
		most := g.V(chanceMost + set)
		g.I(asm.VMAXPS, most, w(set, 0), g.V(chanceLeast))
		for i := 1; i < chanceVectors; i++ {
			g.I(asm.VMAXPS, most, w(set, i), most)
		}
	}
	most := g.mostOf(n)
	inverse := asm.X(chanceT)
	g.I(asm.VBROADCASTSS, inverse, g.ConstF32(arith.ProbabilityTop))
	g.I(asm.VDIVPS, inverse, inverse, most)
	g.I(asm.VMOVUPS, asm.At(scrReg, g.inversesAt()), inverse)
	g.I(asm.VMULPS, most, most, g.ConstF32(arith.ProbabilityStep).Bcast())
	g.I(asm.VMOVUPS, asm.At(kReg, 4*first), most)
	for set := range n {
		for i := range chanceVectors {
			g.I(asm.VMULPS, w(set, i), w(set, i), asm.At(scrReg, g.inversesAt()+4*set).Bcast())
		}
	}
	for set := range n {
		for i := range chanceVectors {
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

// mostOf folds the lanes of the largest weights of n sets to one lane each of the register it
// returns; those of sets that there are not repeat others.
func (g *gen) mostOf(n int) asm.Vec {
	most := func(set int) asm.Vec { return g.V(chanceMost + min(set, n-1)) }
	t := g.V(chanceT + 1)
	pair := func(dst asm.Vec, a, b asm.Vec) {
		g.I(asm.VUNPCKLPS, t, a, b)
		g.I(asm.VUNPCKHPS, dst, a, b)
		g.I(asm.VMAXPS, dst, dst, t)
	}
	low, high := g.V(chanceT+2), g.V(chanceT+3)
	pair(low, most(0), most(1))
	if n > 2 {
		pair(high, most(2), most(3))
	} else {
		high = low
	}
	all := g.V(chanceMost)
	g.I(asm.VSHUFPS, t, low, high, asm.Imm(0x44))
	g.I(asm.VSHUFPS, all, low, high, asm.Imm(0xee))
	g.I(asm.VMAXPS, all, all, t)
	g.I(asm.VEXTRACTF64X4, t.Y(), all, asm.Imm(1))
	g.I(asm.VMAXPS, all.Y(), all.Y(), t.Y())
	g.I(asm.VEXTRACTF32X4, t.X(), all.Y(), asm.Imm(1))
	g.I(asm.VMAXPS, all.X(), all.X(), t.X())
	return all.X()
}

// An opened block has its lines as loadLine leaves them, and scales of float32:
//
//	K block  [64/16 panels][headDim/4][16 positions][4 dims]uint8, 128 added  [headDim/32][64]float32
//	V block  [headDim/16 panels][64/4][16 dims][4 positions]int8              [headDim/32][64]float32

// A kernel that reads a block as it is cached prefetches the next one as its time goes by. Lines of
// its own block are not asked for once more, unlike in prefetchPart: there is so little to compute
// between two of them that it would only take the room of others.
