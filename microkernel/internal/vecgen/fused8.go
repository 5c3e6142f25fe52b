package vecgen

import "sandwich/microkernel/internal/amd64/asm"

// A block of int8 keys or values has a float16 scale for every position and scaleDims of its
// dimensions, behind the elements: [HeadDim/scaleDims][64 positions]. They are widened into the
// scratch before the block is used, those of the keys and then those of the values, and every
// element is multiplied by its scale, exactly, before it enters the chain.
const scaleDims = 32

// scaleFloats is the number of scales of a block of keys, and of one of values.
func (f Fused) scaleFloats() int {
	if !f.Int8 || f.Paired {
		return 0
	}
	return f.HeadDim / scaleDims * positions
}

// scaleAt is where in scratch the widened scales of the keys begin.
func (f Fused) scaleAt() int {
	if !f.chained() {
		return f.roundedAt() + f.Rows*roundedRow
	}
	return scrP + f.Rows*rowP
}

// sameScale is how many dimensions of the scores run with the same scales.
func (f Fused) sameScale() int {
	if f.Int8 && f.chained() {
		return scaleDims
	}
	return max(1, f.scoreSteps())
}

// scoreSteps is the k-steps of a score: dimensions, or pairs of them.
func (f Fused) scoreSteps() int {
	if !f.chained() {
		return f.keyDims() / 2
	}
	return f.HeadDim
}

// int8Scale says which scales a product needs.
type int8Scale struct {
	value bool // of values: one for each k-step, in all lanes; otherwise of keys: one for each lane
	set   int  // the first panel of values, or the dimensions of the keys in units of scaleDims
}

// widenScales converts the scales of the block's keys and values. It clobbers aPtr, bPtr and count.
func (g *fused) widenScales() {
	n := g.scaleFloats()
	if n == 0 {
		return
	}
	if g.integers() {
		g.widenValueScales()
		return
	}
	elements := positions * g.HeadDim
	g.Lea(bPtr, asm.At(scrReg, g.scaleAt()))
	for _, block := range []asm.Reg{kReg, vReg} {
		g.Lea(aPtr, asm.At(block, elements))
		g.MovImm(count, uint64(n/group))
		loop := g.Here()
		for h := range g.parts {
			g.I(asm.VCVTPH2PS, g.v(h), asm.At(aPtr, g.part(h, 2)))
			g.I(asm.VMOVUPS, asm.At(bPtr, g.part(h, 4)), g.v(h))
		}
		g.Add(aPtr, asm.Imm32(2*group))
		g.Add(bPtr, asm.Imm32(4*group))
		g.Dec(count)
		g.Jcc(asm.NotZero, loop)
	}
}

// loadInt8 loads vector j of k-step i into register first+j, scaled. Scores lie under their keys'
// scales, at the same distance for every panel, and probabilities under their values'.
func (g *fused) loadInt8(p product, i, j, first int, m asm.Mem) {
	x := g.v(first + j)
	g.I(asm.VPMOVSXBD, x, m)
	g.I(asm.VCVTDQ2PS, x, x)
	if !p.scale.value {
		at := g.scaleAt() - scrP + 4*positions*p.scale.set
		g.I(asm.VMULPS, x, x, asm.At(outPtr, at+j*x.Bytes()))
		return
	}
	set := (p.scale.set + j/g.parts) * group / scaleDims
	scale := asm.At(aPtr, g.scaleAt()-scrP+4*(g.scaleFloats()+positions*set+i))
	if g.wide {
		g.I(asm.VMULPS, x, x, scale.Bcast())
		return
	}
	t := g.v(first + p.columns*g.parts)
	g.I(asm.VBROADCASTSS, t, scale)
	g.I(asm.VMULPS, x, x, t)
}
