package attention

import (
	"math/bits"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/kernel"
)

// step emits k-step i of the tile: every row's element of A times the panels' elements of B.
func (g *gen) step(p product, i int) {
	vectors := p.columns * g.Parts
	first := g.Rows * vectors * g.chains() // registers: accumulators, the row of B, an element of A
	sum := func(r, j int) asm.Vec { return g.V((r*vectors+j)*g.chains() + (p.odd+i)%g.chains()) }
	width := 8 * (3 - g.Parts) * g.operandBytes()
	multiply := asm.VFMADD231PS
	if !g.chained() {
		multiply = asm.VDPBF16PS
	}
	for j := range vectors {
		m := asm.At(bPtr, j/g.Parts*p.panelStride+j%g.Parts*width+i*arith.Lanes*g.operandBytes())
		switch {
		case !g.chained():
			g.I(asm.VMOVUPS, g.V(first+j), m)
		case g.Int8:
			g.loadInt8(p, i, j, first, m)
		case g.F16:
			g.I(asm.VCVTPH2PS, g.V(first+j), m)
		default:
			g.I(asm.VMOVUPS, g.V(first+j), m)
		}
		if g.byFMA() && !g.truncates() {
			g.roundToBF16(g.V(first + j))
		}
	}
	for r := range g.Rows {
		a := asm.At(aPtr, r*p.rowStride+4*i)
		if g.embeds(p) {
			for j := range vectors {
				g.I(multiply, sum(r, j), g.V(first+j), a.Bcast())
			}
			continue
		}
		element := g.V(first + vectors)
		g.I(asm.VBROADCASTSS, element, a)
		for j := range vectors {
			g.I(multiply, sum(r, j), element, g.V(first+j))
		}
	}
}

// embeds reports whether each multiply-add broadcasts the element of A itself. One instruction
// less per two lets the core look further ahead while lines are in flight. Float32 elements, which
// need no widening, leave no load slots for it.
func (g *gen) embeds(p product) bool { return g.Wide && g.operandBytes() < 4 && p.columns <= 2 }

// steps emits n k-steps and advances the pointers. Pairs of k begin at even n.
func (g *gen) steps(p product, n int) {
	for i := range n {
		if n == unroll {
			g.prefetchPart(p, i)
		}
		k := i
		if other := i ^ 1; g.pairsReversed() && other < n {
			k = other
		}
		g.step(p, k)
	}
	g.Add(bPtr, asm.Imm32(int32(n*arith.Lanes*g.operandBytes())))
	g.Add(aPtr, asm.Imm32(int32(4*n)))
	if n == unroll {
		g.advanceAhead(p.lines)
	}
}

// scores computes the products of the rows with the keys up to the last one that any row sees into
// scratch: whole passes, one chain over the head dimension each.
func (g *gen) scores() {
	steps := g.scoreSteps()
	g.scorePasses(arith.Lanes*steps*g.operandBytes(), 4*steps, func(p product) {
		g.clear(p)
		g.loadQueries()
		for first := 0; first < steps; first += g.stepsPerScale() {
			p.scale = int8Scale{set: first / arith.ScaleDims}
			g.overDims(p, min(steps, first+g.stepsPerScale())-first)
		}
		vectors := p.columns * g.Parts
		for r := range g.Rows {
			for j := range vectors {
				g.I(asm.VMOVUPS, asm.At(outPtr, r*kernel.ScratchRow+j*g.V(0).Bytes()), g.V(r*vectors+j))
			}
		}
	})
}

// loadQueries sets aPtr to the queries in the form that the products read.
func (g *gen) loadQueries() {
	if g.byFMA() {
		g.Lea(aPtr, asm.At(scrReg, g.queriesAt()))
		return
	}
	g.Mov(aPtr, qReg)
}

// scorePasses emits the passes over the panels of keys up to the last one that any row sees. bPtr
// points to the panels; pass advances it by the first panel of its tile. outPtr points to the
// scores in scratch.
func (g *gen) scorePasses(panel, row int, pass func(p product)) {
	columns := g.columns()
	g.Mov32(passes, asm.At(scrReg, kernel.ScratchLargest))
	g.Add(passes, asm.Imm32(int32(arith.Lanes*columns-1)))
	g.Shr(passes, uint8(bits.Len(uint(arith.Lanes*columns))-1))
	g.Mov(bPtr, kReg)
	g.Lea(outPtr, asm.At(scrReg, kernel.ScratchScores))
	g.loopPasses(func() {
		pass(product{columns: columns, panelStride: panel, rowStride: row, lines: g.linesPerTurn(columns)})
		g.Add(outPtr, asm.Imm32(int32(64*columns)))
		g.Add(bPtr, asm.Imm32(int32((columns-1)*panel)))
	})
}

// overDims emits n k-steps of the scores.
func (g *gen) overDims(p product, n int) {
	if turns := n / unroll; turns > 0 {
		g.MovImm(count, uint64(turns))
		g.Align(16)
		loop := g.Here()
		g.steps(p, unroll)
		g.Dec(count)
		g.Jcc(asm.NotZero, loop)
	}
	for i := range n % unroll {
		p.odd = i % 2
		g.steps(p, 1)
	}
}

// values computes the products of the probabilities with the values, one chain over the positions
// that any row sees, and merges them into the running output.
func (g *gen) values() {
	panel, from, row := arith.Lanes*positions*g.ElementBytes(), kernel.ScratchScores, kernel.ScratchRow
	if !g.chained() {
		panel, from, row = pairPanel, g.bf16At(), bf16Row
	}
	g.Lea(outPtr, asm.At(stateReg, kernel.StateOut))
	g.overPasses(g.PaddedDim()/arith.Lanes, g.columns(), func(first, columns int) {
		p := product{columns: columns, panelStride: panel, rowStride: row, lines: g.linesPerTurn(columns)}
		p.scale = int8Scale{value: true, set: first}
		g.clear(p)
		g.Mov(bPtr, vReg)
		g.Lea(aPtr, asm.At(scrReg, from))
		g.overSeen(p)
		g.mergeRows(columns)
		g.Add(vReg, asm.Imm32(int32(columns*panel)))
		g.Add(outPtr, asm.Imm32(int32(64*columns)))
	})
}

// overSeen emits the k-steps of the values: the positions that any row sees, or pairs of them.
func (g *gen) overSeen(p product) {
	g.Mov32(count, asm.At(scrReg, kernel.ScratchLargest))
	switch {
	case g.pairsReversed():
		even := g.NewLabel()
		g.Shr(count, 1)
		g.countDown(unroll/2, func(pairs int) { g.steps(p, 2*pairs) })
		g.Mov32(count, asm.At(scrReg, kernel.ScratchLargest))
		g.And(count, asm.Imm32(1))
		g.Jcc(asm.Zero, even)
		g.steps(p, 1)
		g.Bind(even)
		return
	case !g.chained():
		g.Add(count, asm.Imm32(1))
		g.Shr(count, 1)
	}
	g.countDown(unroll, func(n int) { g.steps(p, n) })
}
