package vecgen

import "sandwich/microkernel/internal/amd64/asm"

// The bits of dot products without them, for the few rows of a decode step: they would fill a tile
// by a sixteenth, and making pairs of what is cached takes longer than their products save. What
// both instructions add up is multiply-adds of float32, since products of bfloat16 are exact
// there (Intel SDM volume 2): VDPBF16PS has one chain, in which the second of a pair of k comes
// first; of TDPBF16PS the even and the odd ones of 32 k have a chain each that begins at zero, and
// the two are added to each other and then to the sum. Queries and probabilities are bfloat16 as
// float32, so that what is cached need only be widened.
//
// Both take subnormal numbers for zeros, in products and sums too, which multiply-adds do only
// under an MXCSR that costs hundreds of cycles to load. So nothing may become subnormal: half
// precision and its scales are multiples of 2^-24, and queries below leastQuery and probabilities
// below leastChance count as zeros in every kernel of bfloat16. What is left has eight bits and is
// a multiple of 2^-87 or 2^-71; products and all their rounded sums are multiples of 2^-111 or
// 2^-95, normal numbers or zeros. A float32 cache may hold anything: its rows take dot products.
const (
	fewRows     = nearRows // beyond it memory does not limit, and dot products are better filled
	leastQuery  = 0x1p-80
	leastChance = 0x1p-64
)

// few says that the kernel is one of these. Queries are widened sixteen elements at a time.
func (f Fused) few() bool {
	return f.rounds() && !f.Paired && f.Rows <= fewRows && f.size() < 4 && f.keyDims()%group == 0 &&
		(f.Dot == TDPBF16 || f.HeadDim%group == 0)
}

// Least are the smallest element of a query and the smallest probability that a dot product does
// not take for zeros.
func (d Dot) Least() (query, chance float32) {
	if d == FMA || d == DPBUSD {
		return 0, 0
	}
	return leastQuery, leastChance
}

// rounds says that the products are of bfloat16.
func (f Fused) rounds() bool { return f.Dot == DPBF16 || f.Dot == TDPBF16 }

// chained says that the products are multiply-adds of float32 on the block as it is cached.
func (f Fused) chained() bool { return f.Dot == FMA || f.few() }

// sums is how many chains an element of a product has at a time.
func (f Fused) sums() int {
	if f.few() && f.Dot == TDPBF16 {
		return 2
	}
	return 1
}

// inPairs says that the chain of the kernel takes the second of a pair of k first.
func (f Fused) inPairs() bool { return f.few() && f.Dot == DPBF16 }

// queriesAt is where in scratch the queries are as float32, sumsAt where the sums of values are.
func (f Fused) queriesAt() int { return f.scaleAt() + 2*f.scaleFloats()*4 }

// sumsAt: see queriesAt.
func (f Fused) sumsAt() int { return f.queriesAt() + 4*f.Rows*f.keyDims() }

// fewBytes is ScratchBytes of a kernel of as many rows, or of fewRows.
func (f Fused) fewBytes() int {
	f.Rows = min(f.Rows, fewRows)
	return f.sumsAt() + 4*f.Rows*f.paddedDim()
}

// widenQueries brings the queries into scratch as float32.
func (g *fused) widenQueries() {
	if !g.few() {
		return
	}
	g.Mov(aPtr, qReg)
	g.Lea(bPtr, asm.At(scrReg, g.queriesAt()))
	g.MovImm(count, uint64(g.Rows*g.keyDims()/group))
	loop := g.Here()
	g.I(asm.VPMOVZXWD, g.v(0), asm.At(aPtr, 0))
	g.I(asm.VPSLLD, g.v(0), g.v(0), asm.Imm(16))
	g.I(asm.VMOVUPS, asm.At(bPtr, 0), g.v(0))
	g.Add(aPtr, asm.Imm32(2*group))
	g.Add(bPtr, asm.Imm32(4*group))
	g.Dec(count)
	g.Jcc(asm.NotZero, loop)
}

// roundInPlace makes the bfloat16 nearest to the float32 of a register float32 again.
func (g *fused) roundInPlace(x asm.Vec) {
	g.I(asm.VCVTNE2PS2BF16, x, x, x)
	g.I(asm.VPMOVZXWD, x, x.Y())
	g.I(asm.VPSLLD, x, x, asm.Imm(16))
}

// roundChained rounds the probabilities of all rows.
func (g *fused) roundChained() {
	g.setF(g.v(leastReg), leastChance)
	for i := range g.Rows * positions / group {
		x, at := g.v(i%8), asm.At(scrReg, scrP+4*group*i)
		g.isChance(at)
		g.I(asm.VCVTNE2PS2BF16, x, x, at)
		g.I(asm.VPMOVZXWD, x, x.Y())
		g.I(asm.VPSLLD, x.KZ(asm.K1), x, asm.Imm(16))
		g.I(asm.VMOVUPS, at, x)
	}
}

// leastReg has leastChance in each lane while probabilities are rounded.
const leastReg = 8

// isChance makes K1 the mask of probabilities that are not too small.
func (g *fused) isChance(at asm.Mem) {
	const notAbove = 10 // true for what is no number
	g.I(asm.VCMPPSK, asm.K1, g.v(leastReg), at, asm.Imm(notAbove))
}

// chances loads probabilities, small ones as zeros.
func (g *fused) chances(x asm.Vec, at asm.Mem) {
	g.isChance(at)
	g.I(asm.VMOVUPS, x.KZ(asm.K1), at)
}

// addChains ends 32 k: the chains of even and odd k and, unless these are the first, the sum so far
// become the sum at outPtr, whose rows are `row` bytes apart.
func (g *fused) addChains(p product, row int, first bool) {
	vectors := p.columns * g.parts
	for i := range g.Rows * vectors {
		x, sum := g.v(2*i), asm.At(outPtr, i/vectors*row+64*(i%vectors))
		g.I(asm.VADDPS, x, x, g.v(2*i+1))
		if !first {
			g.I(asm.VADDPS, x, x, sum)
		}
		g.I(asm.VMOVUPS, sum, x)
	}
}

// fewScores is scores by chains of even and odd dimensions.
func (g *fused) fewScores() {
	g.scorePasses(group*g.HeadDim*g.size(), 4*g.keyDims(), func(p product) {
		g.loadQueries()
		for from := 0; from < g.HeadDim; from += tileK {
			p.scale = int8Scale{set: from / scaleDims}
			g.clear(p)
			g.overDims(p, min(tileK, g.HeadDim-from))
			g.addChains(p, rowP, from == 0)
		}
	})
}

// fewValues is values by chains of even and odd positions, of one half of the block after the
// other.
func (g *fused) fewValues() {
	panel := group * positions * g.size()
	g.Lea(outPtr, asm.At(scrReg, g.sumsAt()))
	g.overPasses(g.paddedDim()/group, g.columns(), func(first, columns int) {
		p := product{columns: columns, panelStride: panel, rowStride: rowP, lines: g.linesPerTurn(columns)}
		p.scale = int8Scale{value: true, set: first}
		done := g.NewLabel()
		g.Mov(bPtr, vReg)
		g.Lea(aPtr, asm.At(scrReg, scrP))
		for half := range positions / tileK {
			g.clear(p)
			g.overPositions(p, half)
			g.addChains(p, 4*g.paddedDim(), half == 0)
			if half == 0 {
				g.Mov32(count, asm.At(scrReg, scrLargest))
				g.Cmp(count, asm.Imm32(tileK))
				g.Jcc(asm.LessOrEqual, done)
			}
		}
		g.Bind(done)
		g.Add(vReg, asm.Imm32(int32(columns*panel)))
		g.Add(outPtr, asm.Imm32(int32(64*columns)))
	})
	g.Lea(outPtr, asm.At(stateReg, StateOut))
	g.Lea(bPtr, asm.At(scrReg, g.sumsAt()))
	g.overPasses(g.paddedDim()/group, tilePanels, func(_, panels int) {
		g.mergeStored(panels, func(r, p int) asm.Mem { return asm.At(bPtr, 4*r*g.paddedDim()+64*p) })
		g.Add(outPtr, asm.Imm32(int32(64*panels)))
		g.Add(bPtr, asm.Imm32(int32(64*panels)))
	})
}

// overPositions emits the k-steps of a half of the block's positions, up to the last that any row
// sees.
func (g *fused) overPositions(p product, half int) {
	some, even := g.NewLabel(), g.NewLabel()
	g.Mov32(count, asm.At(scrReg, scrLargest))
	g.Sub(count, asm.Imm32(int32(half*tileK)))
	g.Cmp(count, asm.Imm32(tileK))
	g.Jcc(asm.LessOrEqual, some)
	g.MovImm(count, tileK)
	g.Bind(some)
	g.Shr(count, 1)
	g.countDown(unroll/2, func(pairs int) { g.steps(p, 2*pairs) })
	g.Mov32(count, asm.At(scrReg, scrLargest))
	if half == 0 {
		g.Cmp(count, asm.Imm32(tileK))
		g.Jcc(asm.GreaterEqual, even)
	}
	g.And(count, asm.Imm32(1))
	g.Jcc(asm.Zero, even)
	g.steps(p, 1)
	g.Bind(even)
}
