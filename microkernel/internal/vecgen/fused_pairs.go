package vecgen

import (
	"fmt"

	"sandwich/microkernel/internal/amd64/asm"
)

// Dot is what a fused kernel adds up scores and values by.
type Dot uint8

// The dot products. Those of bfloat16 round queries, keys, probabilities and values to nearest,
// ties to even, and take subnormal numbers for zeros. That of integers rounds queries and
// probabilities to eight bits, and reads keys and values of eight (fused_int8.go).
const (
	FMA     Dot = iota // one fused multiply-add of float32 for each k
	DPBF16             // VDPBF16PS: two fused multiply-adds for a pair of k, the second of the pair first
	TDPBF16            // TDPBF16PS: for 32 k the even ones and the odd ones add up by themselves, and then their sum
	DPBUSD             // VPDPBUSD: products of integers, exact, and a scale for every 32 dimensions
)

// A block in pairs is what dot products of bfloat16 read: words of two k, k-major, in panels of 16
// columns. Dimensions behind the head and positions that no row sees are zeros.
//
//	K block  [64/16 panels of positions][keyDims/2][16 positions][2 dims]
//	V block  [paddedDim/16 panels of dims][32][16 dims][2 positions]
const (
	tileRows   = 16
	tileK      = 32 // of a tile
	tileBytes  = 1024
	pairPanel  = positions / 2 * 4 * group // bytes of a panel of values
	roundedRow = 2 * positions             // probabilities of a row as bfloat16
)

// keyDims is the head dimension in whole steps of the dot product.
func (f Fused) keyDims() int {
	step := 2
	if f.Dot == TDPBF16 {
		step = tileK
	}
	return (f.HeadDim + step - 1) / step * step
}

// QueryBytes is the length of a query vector: float32, bfloat16 with zeros up to whole steps, or
// blocks of quantized activations.
func (f Fused) QueryBytes() int {
	switch f.Dot {
	case FMA:
		return 4 * f.HeadDim
	case DPBUSD:
		return f.sets() * querySet
	}
	return 2 * f.keyDims()
}

// PairBytes is the size of a block of keys and the one of values in pairs, or opened for integers.
func (f Fused) PairBytes() int {
	if f.integers() {
		return 2 * (positions*f.HeadDim + 4*positions*f.sets())
	}
	return f.pairKeyBytes() + f.paddedDim()/group*pairPanel
}

func (f Fused) pairKeyBytes() int { return positions * f.keyDims() * 2 }

// roundedAt is where in scratch the rounded probabilities begin, pairAt where a block in pairs
// does.
func (f Fused) roundedAt() int { return scrP + f.Rows*rowP }

// pairAt: see roundedAt.
func (f Fused) pairAt() int { return f.scaleAt() + 2*f.scaleFloats()*4 }

// GeneratePairs returns the code that brings a cached block into pairs, or opens it for integers:
// of FusedArgs, KV is the block, State where the pairs go, Scratch has ScratchBytes, Blocks is how
// many positions anybody sees, and After the block that is prefetched.
func GeneratePairs(level asm.Level, f Fused) ([]byte, error) {
	if MaxRows(level, f.Dot) == 0 || f.Dot == FMA || f.Paired || f.HeadDim < 1 {
		return nil, fmt.Errorf("attention kernel %+v: no opened blocks", f)
	}
	g := &fused{gen: newGen(level), Fused: f}
	g.Mov(kReg, asm.At(args, offKV))
	g.Lea(vReg, asm.At(kReg, g.keyBytes()))
	g.Mov(stateReg, asm.At(args, offState))
	g.Mov(scrReg, asm.At(args, offScratch))
	g.Mov(count, asm.At(args, offBlocks))
	g.Mov(ahead, asm.At(args, offAfter))
	if f.integers() {
		g.openIntegers()
	} else {
		g.Store32(asm.At(scrReg, scrLargest), count)
		g.widenScales()
		g.pairBlock(stateReg, 0)
	}
	code, err := g.finish()
	if err != nil {
		return nil, fmt.Errorf("pairs of %+v: %w", f, err)
	}
	return code, nil
}

// Registers of pairBlock: kReg and vReg walk over the block, outPtr over the pairs, aPtr over the
// scales; passes counts panels, count pairs. Four pairs are made side by side.
const (
	pairUnroll = 4
	pairOrder  = 31 // the words of two rows in turn
	pairScale  = 28 // int8 keys: of the sixteen positions
)

// pairBlock brings the block at kReg and vReg into pairs at dst+at. The values end at the last
// position that any row sees, with zeros behind it up to the whole block: what was never stored may
// be no number. It clobbers kReg, vReg and all that it has registers for.
func (g *fused) pairBlock(dst asm.Reg, at int) {
	g.loadPairOrder()
	g.Lea(outPtr, asm.At(dst, at))
	g.pairKeys()
	if g.Int8 {
		g.pairValues8()
	} else {
		g.pairValues()
	}
}

// pairsInPlace prepares a kernel that makes pairs itself: the whole block at once, into scratch,
// but for tiles, which take them as they are made.
func (g *fused) pairsInPlace() {
	if g.streams() {
		g.loadPairOrder()
		return
	}
	g.pairBlock(scrReg, g.pairAt())
	g.Lea(kReg, asm.At(scrReg, g.pairAt()))
	g.Lea(vReg, asm.At(kReg, g.pairKeyBytes()))
}

// loadPairOrder is the words of two rows in turn. It clobbers count.
func (g *fused) loadPairOrder() {
	if g.truncates() {
		g.MovImm(count, 0xAAAAAAAA)
		g.KMovD(pairUpper, count)
		return
	}
	order := make([]uint32, group)
	for i := range order {
		order[i] = uint32(i | (group+i)<<16)
	}
	g.I(asm.VMOVUPS, g.v(pairOrder), g.ConstU32s(order...))
}

// pairRows makes n pairs of the 2n rows at src. scale is the factor of row r, nil for none. With
// `odd` the last row has no partner but zeros.
func (g *fused) pairRows(src asm.Reg, off, n int, odd bool, scale func(r int) asm.Operand) {
	g.pairsOf(src, off, outPtr, 0, n, odd, scale)
	g.Add(outPtr, asm.Imm32(int32(64*n)))
}

// pairsOf is pairRows into dst, from `to` on.
func (g *fused) pairsOf(src asm.Reg, off int, dst asm.Reg, to, n int, odd bool, scale func(r int) asm.Operand) {
	each := func(f func(r int, x asm.Vec)) {
		for r := range 2 * n {
			if !odd || r < 2*n-1 {
				f(r, g.v(r))
			}
		}
	}
	each(func(r int, x asm.Vec) {
		m := asm.At(src, off+r*group*g.size())
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
		g.zero(2*n - 1)
	}
	g.joinRows(n)
	for i := range n {
		g.I(asm.VMOVUPS, asm.At(dst, to+64*i), g.v(2*i))
	}
}

// pairUpper is the mask of the upper words of pairs.
const pairUpper = asm.K7

// truncates says that the upper half of a value is all of it.
func (f Fused) truncates() bool { return f.F16 && f.Rounded }

// joinRows makes pairs of the rows in registers 0 to 2n-1, in the even ones.
func (g *fused) joinRows(n int) {
	if g.truncates() {
		for i := range n {
			g.I(asm.VPSRLD, g.v(2*i), g.v(2*i), asm.Imm(16))
		}
		for i := range n {
			g.I(asm.VMOVDQU16, g.v(2*i).K(pairUpper), g.v(2*i+1))
		}
		return
	}
	for i := range n {
		g.I(asm.VCVTNE2PS2BF16, g.v(2*i), g.v(2*i+1), g.v(2*i))
	}
	for i := range n {
		g.I(asm.VPERMW, g.v(2*i), g.v(pairOrder), g.v(2*i))
	}
}

// pairLoop makes the pairs that count says, at least none, from src on.
func (g *fused) pairLoop(src asm.Reg, scale func(r int) asm.Operand) {
	row := group * g.size()
	g.countDown(pairUnroll, func(n int) {
		g.prefetchPairs(n)
		g.pairRows(src, 0, n, false, scale)
		g.Add(src, asm.Imm32(int32(2*n*row)))
	})
}

// pairKeys makes pairs of dimensions.
func (g *fused) pairKeys() {
	row := group * g.size()
	g.MovImm(passes, positions/group)
	if g.Int8 {
		g.Lea(aPtr, asm.At(scrReg, g.scaleAt()))
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
			g.zero(0)
			for i := range rest {
				g.I(asm.VMOVUPS, asm.At(outPtr, 64*i), g.v(0))
			}
			g.Add(outPtr, asm.Imm32(int32(64*rest)))
		}
	})
}

// pairSets makes pairs of the dimensions of a panel of int8 keys, whose scales stand at aPtr, those
// of the next set 64 positions further on.
func (g *fused) pairSets() {
	for set := range g.HeadDim / scaleDims {
		g.I(asm.VMOVUPS, g.v(pairScale), asm.At(aPtr, 4*positions*set))
		g.MovImm(count, scaleDims/2)
		g.pairLoop(kReg, func(int) asm.Operand { return g.v(pairScale) })
	}
	g.Add(aPtr, asm.Imm32(4*group))
}

// pairValues makes pairs of positions.
func (g *fused) pairValues() {
	g.MovImm(passes, uint64(g.paddedDim()/group))
	g.loopPasses(func() {
		g.Mov(bPtr, vReg)
		g.seenPairs(func() { g.pairLoop(bPtr, nil) }, func() { g.pairRows(bPtr, 0, 1, true, nil) })
		g.Add(vReg, asm.Imm32(int32(positions*group*g.size())))
	})
}

// pairValues8 is pairValues for int8, whose positions have a scale in each set of two panels.
func (g *fused) pairValues8() {
	const scales = passes // what it walks over
	scale := func(r int) asm.Operand { return asm.At(scales, 4*r).Bcast() }
	for panel := range g.HeadDim / group {
		set := panel * group / scaleDims
		g.Lea(bPtr, asm.At(vReg, panel*positions*group))
		g.Lea(scales, asm.At(scrReg, g.scaleAt()+4*(g.scaleFloats()+positions*set)))
		g.seenPairs(func() { g.pairLoop8(scales, scale) }, func() { g.pairRows(bPtr, 0, 1, true, scale) })
	}
}

// pairLoop8 is pairLoop over values and their scales.
func (g *fused) pairLoop8(scales asm.Reg, scale func(r int) asm.Operand) {
	g.countDown(pairUnroll, func(n int) {
		g.prefetchPairs(n)
		g.pairRows(bPtr, 0, n, false, scale)
		g.Add(bPtr, asm.Imm32(int32(2*n*group)))
		g.Add(scales, asm.Imm32(int32(8*n)))
	})
}

// prefetchPairs prefetches beside an unrolled step; single ones are too few to ask for lines.
func (g *fused) prefetchPairs(n int) {
	if n == pairUnroll {
		g.prefetch(g.pairLinesPerTurn())
	}
}

// seenPairs makes the pairs of a panel of values: whole ones in a loop over count, one of a last
// position without a partner, and zeros up to the end of the block.
func (g *fused) seenPairs(whole, odd func()) {
	even, done := g.NewLabel(), g.NewLabel()
	g.Mov32(count, asm.At(scrReg, scrLargest))
	g.Shr(count, 1)
	whole()
	g.Mov32(count, asm.At(scrReg, scrLargest))
	g.Cmp(count, asm.Imm32(positions))
	g.Jcc(asm.Zero, done)
	g.And(count, asm.Imm32(1))
	g.Jcc(asm.Zero, even)
	odd()
	g.Bind(even)
	g.Mov32(count, asm.At(scrReg, scrLargest))
	g.Add(count, asm.Imm32(1))
	g.Shr(count, 1)
	g.Sub(count, asm.Imm32(positions/2))
	g.Jcc(asm.Zero, done)
	g.zero(0)
	loop := g.Here()
	g.I(asm.VMOVUPS, asm.At(outPtr, 0), g.v(0))
	g.Add(outPtr, asm.Imm32(64))
	g.Add(count, asm.Imm32(1))
	g.Jcc(asm.NotZero, loop)
	g.Bind(done)
}

// pairLinesPerTurn is the lines of the next block that a turn of making pairs asks for, pairLines
// those of a whole block: as many as the turns read themselves, but for the scales and odd rows.
func (g *fused) pairLinesPerTurn() int { return 2 * pairUnroll * group * g.size() / 64 }

// pairLines: see pairLinesPerTurn.
func (g *fused) pairLines() int {
	turns := positions/group*(g.HeadDim/2/pairUnroll) + g.paddedDim()/group*(positions/2/pairUnroll)
	return turns * g.pairLinesPerTurn()
}

// roundRows rounds the probabilities of all rows to bfloat16.
func (g *fused) roundRows() {
	g.setF(g.v(leastReg), leastChance)
	for r := range g.Rows {
		for half := range 2 {
			at, x := scrP+r*rowP+half*roundedRow, g.v((2*r+half)%8)
			low := g.v(16 + (2*r+half)%8)
			g.chances(x, asm.At(scrReg, at+4*group))
			g.chances(low, asm.At(scrReg, at))
			g.I(asm.VCVTNE2PS2BF16, x, x, low)
			g.I(asm.VMOVUPS, asm.At(scrReg, g.roundedAt()+r*roundedRow+half*64), x)
		}
	}
}
