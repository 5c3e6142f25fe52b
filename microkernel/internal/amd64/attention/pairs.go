package attention

import (
	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/kernel"
)

// Registers of pairBlock: kReg and vReg point to the block, outPtr to the pairs, aPtr to the
// scales; passes counts panels, count pairs. Four pairs are converted side by side.
const (
	pairUnroll = 4
	pairOrder  = 31 // interleaves the words of two rows
	pairScale  = 28 // int8 keys: of the sixteen positions
)

// pairBlock converts the block at kReg and vReg to pairs at dst+at. The values end at the last
// position that any row sees; zeros follow up to the whole block, because positions that were
// never stored may be NaN. It overwrites kReg, vReg and the registers above.
func (g *gen) pairBlock(dst asm.Reg, at int) {
	g.loadPairOrder()
	g.Lea(outPtr, asm.At(dst, at))
	g.pairKeys()
	if g.Int8 {
		g.pairValues8()
	} else {
		g.pairValues()
	}
}

// pairsInPlace prepares a kernel that converts a cached block: the whole block at once into
// scratch, or for streamed kernels only the constants.
func (g *gen) pairsInPlace() {
	if g.streams() {
		g.loadPairOrder()
		return
	}
	g.pairBlock(scrReg, g.pairsAt())
	g.Lea(kReg, asm.At(scrReg, g.pairsAt()))
	g.Lea(vReg, asm.At(kReg, g.pairKeyBytes()))
}

// loadPairOrder loads the constants that interleave the words of two rows. It overwrites count.
func (g *gen) loadPairOrder() {
	if g.truncates() {
		g.MovImm(count, 0xAAAAAAAA)
		g.KMovD(pairUpper, count)
		return
	}
	order := make([]uint32, arith.Lanes)
	for i := range order {
		order[i] = uint32(i | (arith.Lanes+i)<<16)
	}
	g.I(asm.VMOVUPS, g.V(pairOrder), g.ConstU32s(order...))
}

// pairRows converts the 2n rows at src to n pairs. scale returns the factor of row r; it is nil
// without factors. With odd, the last row is paired with zeros.
func (g *gen) pairRows(src asm.Reg, off, n int, odd bool, scale func(r int) asm.Operand) {
	g.pairsOf(src, off, outPtr, 0, n, odd, scale)
	g.Add(outPtr, asm.Imm32(int32(64*n)))
}

// pairsOf is pairRows with the destination dst+to.
func (g *gen) pairsOf(src asm.Reg, off int, dst asm.Reg, to, n int, odd bool, scale func(r int) asm.Operand) {
	each := func(f func(r int, x asm.Vec)) {
		for r := range 2 * n {
			if !odd || r < 2*n-1 {
				f(r, g.V(r))
			}
		}
	}
	each(func(r int, x asm.Vec) {
		m := asm.At(src, off+r*arith.Lanes*g.ElementBytes())
		switch {
		case g.Int8:
			g.I(asm.VPMOVSXBD, x, m)
		case g.F16:
			g.I(asm.VCVTPH2PS, x, m)
		default:
			g.I(asm.VMOVUPS, x, m)
		}
	})
	if g.Int8 {
		each(func(_ int, x asm.Vec) { g.I(asm.VCVTDQ2PS, x, x) })
		each(func(r int, x asm.Vec) { g.I(asm.VMULPS, x, x, scale(r)) })
	}
	if odd {
		g.Zero(2*n - 1)
	}
	g.joinRows(n)
	for i := range n {
		g.I(asm.VMOVUPS, asm.At(dst, to+64*i), g.V(2*i))
	}
}

// pairUpper is the opmask of the upper words of pairs.
const pairUpper = asm.K7

// joinRows combines the rows in registers 0 to 2n-1 to pairs in the even registers.
func (g *gen) joinRows(n int) {
	if g.truncates() {
		for i := range n {
			g.I(asm.VPSRLD, g.V(2*i), g.V(2*i), asm.Imm(16))
		}
		for i := range n {
			g.I(asm.VMOVDQU16, g.V(2*i).K(pairUpper), g.V(2*i+1))
		}
		return
	}
	for i := range n {
		g.I(asm.VCVTNE2PS2BF16, g.V(2*i), g.V(2*i+1), g.V(2*i))
	}
	for i := range n {
		g.I(asm.VPERMW, g.V(2*i), g.V(pairOrder), g.V(2*i))
	}
}

// pairLoop converts count pairs, possibly none, starting at src, and advances src.
func (g *gen) pairLoop(src asm.Reg, scale func(r int) asm.Operand) {
	g.pairLoopThen(src, scale, func(int) {})
}

// pairLoopThen is pairLoop with code after each n pairs.
func (g *gen) pairLoopThen(src asm.Reg, scale func(r int) asm.Operand, then func(n int)) {
	row := arith.Lanes * g.ElementBytes()
	g.countDown(pairUnroll, func(n int) {
		g.prefetchPairs(n)
		g.pairRows(src, 0, n, false, scale)
		g.Add(src, asm.Imm32(int32(2*n*row)))
		then(n)
	})
}

// pairKeys converts keys to pairs of dimensions.
func (g *gen) pairKeys() {
	row := arith.Lanes * g.ElementBytes()
	g.MovImm(passes, positions/arith.Lanes)
	if g.Int8 {
		g.Lea(aPtr, asm.At(scrReg, g.scalesAt()))
	}
	g.loopPasses(func() {
		if g.Int8 {
			g.pairSets()
		} else if whole := g.HeadDim / 2; whole > 0 {
			g.MovImm(count, uint64(whole))
			g.pairLoop(kReg, nil)
		}
		if g.HeadDim%2 > 0 {
			g.pairRows(kReg, 0, 1, true, nil)
			g.Add(kReg, asm.Imm32(int32(row)))
		}
		if rest := (g.keyDims() - g.HeadDim) / 2; rest > 0 {
			g.Zero(0)
			for i := range rest {
				g.I(asm.VMOVUPS, asm.At(outPtr, 64*i), g.V(0))
			}
			g.Add(outPtr, asm.Imm32(int32(64*rest)))
		}
	})
}

// pairSets converts a panel of int8 keys. aPtr points to its scales; those of the next set are 64
// positions further.
func (g *gen) pairSets() {
	for set := range g.HeadDim / arith.ScaleDims {
		g.I(asm.VMOVUPS, g.V(pairScale), asm.At(aPtr, 4*positions*set))
		g.MovImm(count, arith.ScaleDims/2)
		g.pairLoop(kReg, func(int) asm.Operand { return g.V(pairScale) })
	}
	g.Add(aPtr, asm.Imm32(4*arith.Lanes))
}

// pairValues converts values to pairs of positions.
func (g *gen) pairValues() {
	g.MovImm(passes, uint64(g.PaddedDim()/arith.Lanes))
	g.loopPasses(func() {
		g.Mov(bPtr, vReg)
		g.seenPairs(func() { g.pairLoop(bPtr, nil) }, func() { g.pairRows(bPtr, 0, 1, true, nil) })
		g.Add(vReg, asm.Imm32(int32(positions*arith.Lanes*g.ElementBytes())))
	})
}

// pairValues8 is pairValues for int8, where each set of two panels has a scale per position.
func (g *gen) pairValues8() {
	const scales = passes // what it walks over
	scale := func(r int) asm.Operand { return asm.At(scales, 4*r).Bcast() }
	for panel := range g.HeadDim / arith.Lanes {
		set := panel * arith.Lanes / arith.ScaleDims
		g.Lea(bPtr, asm.At(vReg, panel*positions*arith.Lanes))
		g.Lea(scales, asm.At(scrReg, g.scalesAt()+4*(g.ScaleFloats()+positions*set)))
		whole := func() {
			g.pairLoopThen(bPtr, scale, func(n int) { g.Add(scales, asm.Imm32(int32(8*n))) })
		}
		g.seenPairs(whole, func() { g.pairRows(bPtr, 0, 1, true, scale) })
	}
}

// seenPairs converts a panel of values: whole pairs in a loop over count, then a last position
// without a partner, then zeros up to the end of the block.
func (g *gen) seenPairs(whole, odd func()) {
	even, done := g.NewLabel(), g.NewLabel()
	g.Mov32(count, asm.At(scrReg, kernel.ScratchLargest))
	g.Shr(count, 1)
	whole()
	g.Mov32(count, asm.At(scrReg, kernel.ScratchLargest))
	g.Cmp(count, asm.Imm32(positions))
	g.Jcc(asm.Zero, done)
	g.And(count, asm.Imm32(1))
	g.Jcc(asm.Zero, even)
	odd()
	g.Bind(even)
	g.Mov32(count, asm.At(scrReg, kernel.ScratchLargest))
	g.Add(count, asm.Imm32(1))
	g.Shr(count, 1)
	g.Sub(count, asm.Imm32(positions/2))
	g.Jcc(asm.Zero, done)
	g.Zero(0)
	loop := g.Here()
	g.I(asm.VMOVUPS, asm.At(outPtr, 0), g.V(0))
	g.Add(outPtr, asm.Imm32(64))
	g.Add(count, asm.Imm32(1))
	g.Jcc(asm.NotZero, loop)
	g.Bind(done)
}
