package attention

import (
	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/kernel"
)

// widenQueries widens the queries to float32 in scratch.
//
// FMA kernels compute the bits of bfloat16 dot products without the instructions, for the few rows
// of a decode step, which would fill a sixteenth of a tile and need less time than the conversion
// of the cache to pairs. Products of bfloat16 are exact in float32, so both instructions are
// chains of FMAs (Intel SDM, volume 2). VDPBF16PS has one chain, which adds the second of a pair
// of k first. TDPBF16PS has for 32 k one chain of even and one of odd k, both starting at zero; it
// adds the chains to each other and then to the sum.
//
// The instructions flush subnormal numbers to zero, also in sums. FMAs do so only under an MXCSR
// that takes hundreds of cycles to load, so no value may become subnormal. Half precision and its
// scales are multiples of 2^-24, and every bfloat16 kernel replaces queries below arith.LeastQuery
// and probabilities below arith.LeastProbability by zeros. The remaining operands have eight bits
// and are multiples of 2^-87 or 2^-71, so products and all rounded sums are multiples of 2^-111 or
// 2^-95: normal numbers or zeros. A float32 cache may hold any value, so its rows use the
// instructions.
func (g *gen) widenQueries() {
	if !g.byFMA() {
		return
	}
	g.Mov(aPtr, qReg)
	g.Lea(bPtr, asm.At(scrReg, g.queriesAt()))
	g.MovImm(count, uint64(g.Rows*g.keyDims()/arith.Lanes))
	loop := g.Here()
	g.I(asm.VPMOVZXWD, g.V(0), asm.At(aPtr, 0))
	g.I(asm.VPSLLD, g.V(0), g.V(0), asm.Imm(16))
	g.I(asm.VMOVUPS, asm.At(bPtr, 0), g.V(0))
	g.Add(aPtr, asm.Imm32(2*arith.Lanes))
	g.Add(bPtr, asm.Imm32(4*arith.Lanes))
	g.Dec(count)
	g.Jcc(asm.NotZero, loop)
}

// addChains ends 32 k: it stores the sum of the chains of even and odd k and, unless first, of the
// previous sum at outPtr, whose rows are `row` bytes apart.
func (g *gen) addChains(p product, row int, first bool) {
	vectors := p.columns * g.Parts
	for i := range g.Rows * vectors {
		x, sum := g.V(2*i), asm.At(outPtr, i/vectors*row+64*(i%vectors))
		g.I(asm.VADDPS, x, x, g.V(2*i+1))
		if !first {
			g.I(asm.VADDPS, x, x, sum)
		}
		g.I(asm.VMOVUPS, sum, x)
	}
}

// fmaScores computes the scores by chains of even and odd dimensions.
func (g *gen) fmaScores() {
	g.scorePasses(arith.Lanes*g.HeadDim*g.ElementBytes(), 4*g.keyDims(), func(p product) {
		g.loadQueries()
		for from := 0; from < g.HeadDim; from += tileK {
			p.scale = int8Scale{set: from / arith.ScaleDims}
			g.clear(p)
			g.overDims(p, min(tileK, g.HeadDim-from))
			g.addChains(p, kernel.ScratchRow, from == 0)
		}
	})
}

// fmaValues computes the values by chains of even and odd positions, one half of the block at a
// time.
func (g *gen) fmaValues() {
	panel := arith.Lanes * positions * g.ElementBytes()
	g.Lea(outPtr, asm.At(scrReg, g.sumsAt()))
	g.overPasses(g.PaddedDim()/arith.Lanes, g.columns(), func(first, columns int) {
		p := product{columns: columns, panelStride: panel, rowStride: kernel.ScratchRow, lines: g.linesPerTurn(columns)}
		p.scale = int8Scale{value: true, set: first}
		done := g.NewLabel()
		g.Mov(bPtr, vReg)
		g.Lea(aPtr, asm.At(scrReg, kernel.ScratchScores))
		for half := range positions / tileK {
			g.clear(p)
			g.overPositions(p, half)
			g.addChains(p, 4*g.PaddedDim(), half == 0)
			if half == 0 {
				g.Mov32(count, asm.At(scrReg, kernel.ScratchLargest))
				g.Cmp(count, asm.Imm32(tileK))
				g.Jcc(asm.LessOrEqual, done)
			}
		}
		g.Bind(done)
		g.Add(vReg, asm.Imm32(int32(columns*panel)))
		g.Add(outPtr, asm.Imm32(int32(64*columns)))
	})
	g.Lea(outPtr, asm.At(stateReg, kernel.StateOut))
	g.Lea(bPtr, asm.At(scrReg, g.sumsAt()))
	g.overPasses(g.PaddedDim()/arith.Lanes, tilePanels, func(_, panels int) {
		g.mergeStored(panels, func(r, p int) asm.Mem { return asm.At(bPtr, 4*r*g.PaddedDim()+64*p) })
		g.Add(outPtr, asm.Imm32(int32(64*panels)))
		g.Add(bPtr, asm.Imm32(int32(64*panels)))
	})
}

// overPositions emits the k-steps of one half of the block's positions, up to the last that any
// row sees.
func (g *gen) overPositions(p product, half int) {
	some, even := g.NewLabel(), g.NewLabel()
	g.Mov32(count, asm.At(scrReg, kernel.ScratchLargest))
	g.Sub(count, asm.Imm32(int32(half*tileK)))
	g.Cmp(count, asm.Imm32(tileK))
	g.Jcc(asm.LessOrEqual, some)
	g.MovImm(count, tileK)
	g.Bind(some)
	g.Shr(count, 1)
	g.countDown(unroll/2, func(pairs int) { g.steps(p, 2*pairs) })
	g.Mov32(count, asm.At(scrReg, kernel.ScratchLargest))
	if half == 0 {
		g.Cmp(count, asm.Imm32(tileK))
		g.Jcc(asm.GreaterEqual, even)
	}
	g.And(count, asm.Imm32(1))
	g.Jcc(asm.Zero, even)
	g.steps(p, 1)
	g.Bind(even)
}
