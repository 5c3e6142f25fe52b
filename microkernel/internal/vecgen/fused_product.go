package vecgen

import (
	"math/bits"

	"sandwich/microkernel/internal/amd64/asm"
)

// product is a register tile: rows of A, k-major panels of B, `columns` panels wide.
type product struct {
	columns     int // panels
	panelStride int // bytes between panels of B
	rowStride   int // bytes between rows of A
	lines       int // cache lines of the next block to prefetch for every `unroll` k-steps
	scale       int8Scale
	odd         int // of the first k-step: 1 where it is an odd one of 32 k
}

// step emits k-step i of the tile: every row's element of A times the panels' elements of B.
func (g *fused) step(p product, i int) {
	vectors := p.columns * g.parts
	first := g.Rows * vectors * g.sums() // registers: accumulators, the row of B, an element of A
	sum := func(r, j int) asm.Vec { return g.v((r*vectors+j)*g.sums() + (p.odd+i)%g.sums()) }
	width := 8 * (3 - g.parts) * g.operand()
	multiply := asm.VFMADD231PS
	if !g.chained() {
		multiply = asm.VDPBF16PS
	}
	for j := range vectors {
		m := asm.At(bPtr, j/g.parts*p.panelStride+j%g.parts*width+i*group*g.operand())
		switch {
		case !g.chained():
			g.I(asm.VMOVUPS, g.v(first+j), m)
		case g.Int8:
			g.loadInt8(p, i, j, first, m)
		case g.F16:
			g.I(asm.VCVTPH2PS, g.v(first+j), m)
		default:
			g.I(asm.VMOVUPS, g.v(first+j), m)
		}
		if g.few() && !g.truncates() {
			g.roundInPlace(g.v(first + j))
		}
	}
	for r := range g.Rows {
		a := asm.At(aPtr, r*p.rowStride+4*i)
		if g.embeds(p) {
			for j := range vectors {
				g.I(multiply, sum(r, j), g.v(first+j), a.Bcast())
			}
			continue
		}
		element := g.v(first + vectors)
		g.I(asm.VBROADCASTSS, element, a)
		for j := range vectors {
			g.I(multiply, sum(r, j), element, g.v(first+j))
		}
	}
}

// embeds says whether each multiply-add repeats the element of A itself: one instruction less for
// every two lets the core look further ahead while lines are on their way. Elements that need no
// widening leave no room for the additional loads.
func (g *fused) embeds(p product) bool { return g.wide && g.operand() < 4 && p.columns <= 2 }

// operand is the size of an element of the products: of a block as it is cached, or a pair.
func (g *fused) operand() int {
	if !g.chained() {
		return 4
	}
	return g.size()
}

// steps emits n k-steps and moves the pointers behind them. Pairs of k begin at even n.
func (g *fused) steps(p product, n int) {
	for i := range n {
		if n == unroll {
			g.prefetchPart(p, i)
		}
		k := i
		if other := i ^ 1; g.inPairs() && other < n {
			k = other
		}
		g.step(p, k)
	}
	g.Add(bPtr, asm.Imm32(int32(n*group*g.operand())))
	g.Add(aPtr, asm.Imm32(int32(4*n)))
	if n == unroll && p.lines > 0 {
		g.Add(ahead, asm.Imm32(int32(64*p.lines)))
	}
}

func (g *fused) clear(p product) {
	for i := range g.Rows * p.columns * g.parts * g.sums() {
		g.zero(i)
	}
}

// overPasses runs pass for `panels` panels, as many at a time as the tile holds; only the last pass
// may be narrower. Where the code of a pass depends on its first panel, each is emitted.
func (g *fused) overPasses(panels, columns int, pass func(first, columns int)) {
	if g.Int8 && g.chained() {
		for first := 0; first < panels; first += columns {
			pass(first, min(columns, panels-first))
		}
		return
	}
	if whole := panels / columns; whole > 0 {
		g.MovImm(passes, uint64(whole))
		g.loopPasses(func() { pass(0, columns) })
	}
	if rest := panels % columns; rest > 0 {
		pass(panels-rest, rest)
	}
}

func (g *fused) loopPasses(pass func()) {
	loop := g.Here()
	pass()
	g.Dec(passes)
	g.Jcc(asm.NotZero, loop)
}

// scores computes the products of the rows with the keys up to the last one that any row sees, in
// whole passes, one chain over the head dimension each, into scratch.
func (g *fused) scores() {
	steps := g.scoreSteps()
	g.scorePasses(group*steps*g.operand(), 4*steps, func(p product) {
		g.clear(p)
		g.loadQueries()
		for first := 0; first < steps; first += g.sameScale() {
			p.scale = int8Scale{set: first / scaleDims}
			g.overDims(p, min(steps, first+g.sameScale())-first)
		}
		vectors := p.columns * g.parts
		for r := range g.Rows {
			for j := range vectors {
				g.I(asm.VMOVUPS, asm.At(outPtr, r*rowP+j*g.v(0).Bytes()), g.v(r*vectors+j))
			}
		}
	})
}

// loadQueries points aPtr to the queries as the products read them.
func (g *fused) loadQueries() {
	if g.few() {
		g.Lea(aPtr, asm.At(scrReg, g.queriesAt()))
		return
	}
	g.Mov(aPtr, qReg)
}

// scorePasses emits the passes over the panels of keys up to the last one that any row sees: bPtr
// walks over the panels, which pass leaves behind the first one of its tile, and outPtr over the
// scores in scratch.
func (g *fused) scorePasses(panel, row int, pass func(p product)) {
	columns := g.columns()
	g.Mov32(passes, asm.At(scrReg, scrLargest))
	g.Add(passes, asm.Imm32(int32(group*columns-1)))
	g.Shr(passes, uint8(bits.Len(uint(group*columns))-1))
	g.Mov(bPtr, kReg)
	g.Lea(outPtr, asm.At(scrReg, scrP))
	g.loopPasses(func() {
		pass(product{columns: columns, panelStride: panel, rowStride: row, lines: g.linesPerTurn(columns)})
		g.Add(outPtr, asm.Imm32(int32(64*columns)))
		g.Add(bPtr, asm.Imm32(int32((columns-1)*panel)))
	})
}

// overDims emits n k-steps of the scores.
func (g *fused) overDims(p product, n int) {
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

// countDown emits a loop over count, at least no times: of `unroll` steps at a time, and of single
// ones for the rest.
func (g *fused) countDown(unroll int, steps func(n int)) {
	rest, done := g.NewLabel(), g.NewLabel()
	g.Sub(count, asm.Imm32(int32(unroll)))
	g.Jcc(asm.Less, rest)
	g.Align(16)
	loop := g.Here()
	steps(unroll)
	g.Sub(count, asm.Imm32(int32(unroll)))
	g.Jcc(asm.GreaterEqual, loop)
	g.Bind(rest)
	g.Add(count, asm.Imm32(int32(unroll)))
	g.Jcc(asm.Zero, done)
	one := g.Here()
	steps(1)
	g.Dec(count)
	g.Jcc(asm.NotZero, one)
	g.Bind(done)
}

// values computes the products of the probabilities with the values, one chain over the positions
// that any row sees, and merges them into the running output.
func (g *fused) values() {
	panel, from, row := group*positions*g.size(), scrP, rowP
	if !g.chained() {
		panel, from, row = pairPanel, g.roundedAt(), roundedRow
	}
	g.Lea(outPtr, asm.At(stateReg, StateOut))
	g.overPasses(g.paddedDim()/group, g.columns(), func(first, columns int) {
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
func (g *fused) overSeen(p product) {
	g.Mov32(count, asm.At(scrReg, scrLargest))
	switch {
	case g.inPairs():
		even := g.NewLabel()
		g.Shr(count, 1)
		g.countDown(unroll/2, func(pairs int) { g.steps(p, 2*pairs) })
		g.Mov32(count, asm.At(scrReg, scrLargest))
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

// mergeRows folds the accumulators of a value pass into the output rows: out = out*old + (acc +
// 0)*new.
func (g *fused) mergeRows(columns int) {
	vectors := columns * g.parts
	first := g.Rows * vectors
	oldMul, newMul, zero := g.v(first), g.v(first+1), g.v(first+2)
	g.zero(first + 2)
	g.seeingRows(oldMul, newMul, func(r int) {
		for j := range vectors {
			acc, out := g.v(r*vectors+j), asm.At(outPtr, 4*r*g.paddedDim()+j*g.v(0).Bytes())
			g.I(asm.VADDPS, acc, acc, zero)
			g.mergeInto(out, acc, oldMul, newMul)
		}
	})
}

// seeingRows runs merge for the rows that see something of the block, with the factors of their
// running output and of the block's output in all lanes. It clobbers aPtr.
func (g *fused) seeingRows(oldMul, newMul asm.Vec, merge func(r int)) {
	for r := range g.Rows {
		skip := g.NewLabel()
		g.MovSXD(aPtr, asm.At(scrReg, scrMax+4*r))
		g.Cmp(aPtr, asm.Imm32(negInfBits-1<<32))
		g.Jcc(asm.Zero, skip)
		g.I(asm.VBROADCASTSS, oldMul, asm.At(scrReg, scrOldMul+4*r))
		g.I(asm.VBROADCASTSS, newMul, asm.At(scrReg, scrNewMul+4*r))
		merge(r)
		g.Bind(skip)
	}
}

// mergeInto folds a vector of the block's output into the running one.
func (g *fused) mergeInto(out asm.Mem, acc, oldMul, newMul asm.Vec) {
	g.I(asm.VMULPS, acc, acc, newMul)
	g.I(asm.VFMADD231PS, acc, oldMul, out)
	g.I(asm.VMOVUPS, out, acc)
}
