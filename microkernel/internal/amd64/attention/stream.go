package attention

import (
	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/kernel"
)

// Registers of streamed conversion.
const (
	streamDst  = outPtr // destination of the pairs
	streamSrc  = aPtr
	streamTurn = bPtr // counts panels, in bytes of the scales of 16 positions
)

// overStreamPanels runs body for `panels` panels.
//
// A streamed kernel converts a cached block to pairs for one step of 32 k and four panels at a
// time, in two alternating buffers, while the products of the step before are in flight. The pairs
// stay in the first-level cache. The bits are those of an opened block.
func (g *gen) overStreamPanels(panels int, body func()) {
	g.Xor(streamTurn, streamTurn)
	loop := g.Here()
	body()
	g.Add(streamTurn, asm.Imm32(4*arith.Lanes))
	g.Cmp(streamTurn, asm.Imm32(int32(4*arith.Lanes*panels)))
	g.Jcc(asm.NotZero, loop)
}

// streamRows converts `rows` rows at streamSrc to the pairs of a tile, followed by zeros. The tile
// of the next panel is `next` bytes further.
func (g *gen) streamRows(rows, next int, scale func(r int) asm.Operand) {
	row, whole := arith.Lanes*g.ElementBytes(), rows/2
	for p := 0; p < whole; p += pairUnroll {
		n := min(pairUnroll, whole-p)
		g.prefetch(g.streamLines(p))
		g.streamNear(2*p*row, 2*n*row, 2*whole*row, next)
		at := func(r int) asm.Operand { return scale(2*p + r) }
		g.pairsOf(streamSrc, 2*p*row, streamDst, 64*p, n, false, at)
	}
	if rows%2 > 0 {
		g.pairsOf(streamSrc, 2*whole*row, streamDst, 64*whole, 1, true,
			func(int) asm.Operand { return scale(2 * whole) })
		whole++
	}
	if whole < tileK/2 {
		g.Zero(0)
	}
	for p := whole; p < tileK/2; p++ {
		g.I(asm.VMOVUPS, asm.At(streamDst, 64*p), g.V(0))
	}
	g.Add(streamDst, asm.Imm32(tileBytes))
}

// streamScores is tileScores for a cached block.
func (g *gen) streamScores() {
	lineStep, rowStep := g.beginTileScores()
	steps := g.keyDims() / tileK
	for k := range steps + 1 {
		if k < steps {
			g.streamKeys(k)
		}
		if k > 0 {
			g.streamProduct(k-1, tilePanels, asm.AtIndex(qReg, rowStep, 1, 64*(k-1)), lineStep)
		}
	}
	g.storeTiles(tilePanels, rowStep)
}

// streamProduct is tileProduct with the pairs of step k, which are in a buffer.
func (g *gen) streamProduct(k, panels int, a asm.Mem, lineStep asm.Reg) {
	g.tileProduct(k, panels, a, func(p int) asm.Mem {
		return asm.AtIndex(scrReg, lineStep, 1, g.bufferAt(k)+p*tileBytes)
	})
}

// streamKeys converts the keys of step k to pairs of dimensions.
func (g *gen) streamKeys(k int) {
	panel := arith.Lanes * g.HeadDim * g.ElementBytes()
	g.Lea(streamSrc, asm.At(kReg, k*tileK*arith.Lanes*g.ElementBytes()))
	g.Lea(streamDst, asm.At(scrReg, g.bufferAt(k)))
	g.overStreamPanels(tilePanels, func() {
		if g.Int8 {
			g.I(asm.VMOVUPS, g.V(pairScale), asm.AtIndex(scrReg, streamTurn, 1, g.scalesAt()+4*positions*k))
		}
		g.streamRows(min(tileK, g.HeadDim-k*tileK), panel, func(int) asm.Operand { return g.V(pairScale) })
		g.Add(streamSrc, asm.Imm32(int32(panel)))
	})
}

// Registers of streamValues: the keys are not needed any more, and the queries are reloaded. vReg
// and kReg point to the panels and the scales of a pass.
const (
	streamOut   = qReg // rows of the output
	streamScale = kReg
)

// streamValues is tileValues for a cached block.
func (g *gen) streamValues() {
	const lineStep, rowStep = count, aPtr
	g.loadPairOrder() // the softmax has overwritten it
	g.Lea(streamOut, asm.At(stateReg, kernel.StateOut))
	g.Lea(streamScale, asm.At(scrReg, g.scalesAt()+4*g.ScaleFloats()))
	g.overPasses(g.PaddedDim()/arith.Lanes, tilePanels, func(_, panels int) {
		done := g.NewLabel()
		for p := range panels {
			g.TileZero(asm.Tile(p))
		}
		product := func(k int) {
			g.MovImm(lineStep, 64)
			g.MovImm(rowStep, bf16Row)
			g.streamProduct(k, panels, asm.AtIndex(scrReg, rowStep, 1, g.bf16At()+64*k), lineStep)
		}
		g.streamPositions(0, panels)
		g.Mov32(count, asm.At(scrReg, kernel.ScratchLargest))
		second := g.NewLabel()
		g.Cmp(count, asm.Imm32(tileK))
		g.Jcc(asm.Greater, second)
		product(0)
		g.Jmp(done)
		g.Bind(second)
		g.streamPositions(1, panels)
		product(0)
		product(1)
		g.Bind(done)
		g.storeTiles(panels, rowStep)
		g.Mov(outPtr, streamOut)
		g.mergeTiles(panels)
		g.Add(vReg, asm.Imm32(int32(panels*positions*arith.Lanes*g.ElementBytes())))
		g.Add(streamScale, asm.Imm32(int32(4*positions*panels*arith.Lanes/arith.ScaleDims)))
		g.Add(streamOut, asm.Imm32(int32(64*panels)))
	})
	g.Mov(qReg, asm.At(args, offQ))
}

// streamPositions converts half k of the positions of `panels` panels to pairs: all of them, or up
// to the last that any row sees.
func (g *gen) streamPositions(k, panels int) {
	some, done := g.NewLabel(), g.NewLabel()
	half := tileK * arith.Lanes * g.ElementBytes()
	g.Lea(streamSrc, asm.At(vReg, k*half))
	g.Lea(streamDst, asm.At(scrReg, g.bufferAt(k)))
	g.Mov32(count, asm.At(scrReg, kernel.ScratchLargest))
	g.Cmp(count, asm.Imm32(int32((k+1)*tileK)))
	g.Jcc(asm.Less, some)
	all := func() {
		g.streamRows(tileK, 2*half, g.streamPositionScale(k))
		g.Add(streamSrc, asm.Imm32(int32(2*half)))
	}
	g.overValuePanels(panels, all)
	g.Jmp(done)
	g.Bind(some)
	g.overValuePanels(panels, func() { g.streamSome(k) })
	g.Bind(done)
}

// overValuePanels runs body for `panels` panels, of which two share scales in int8.
func (g *gen) overValuePanels(panels int, body func()) {
	if !g.Int8 {
		g.overStreamPanels(panels, body)
		return
	}
	for p := range panels {
		body()
		if p%2 > 0 {
			g.Add(streamScale, asm.Imm32(4*positions))
		}
	}
	g.Sub(streamScale, asm.Imm32(int32(4*positions*(panels/2))))
}

// streamPositionScale returns the scale of a position of half k.
func (g *gen) streamPositionScale(k int) func(r int) asm.Operand {
	return func(r int) asm.Operand { return asm.At(streamScale, 4*(k*tileK+r)).Bcast() }
}

// streamSome is streamRows for the positions of half k up to the last that any row sees, one pair
// at a time. It runs for the last block of a sequence.
func (g *gen) streamSome(k int) {
	row, scale := arith.Lanes*g.ElementBytes(), g.streamPositionScale(k)
	for p := range tileK / 2 {
		whole, none, next := g.NewLabel(), g.NewLabel(), g.NewLabel()
		at := func(r int) asm.Operand { return scale(2*p + r) }
		g.Mov32(count, asm.At(scrReg, kernel.ScratchLargest))
		g.Cmp(count, asm.Imm32(int32(k*tileK+2*p+1)))
		g.Jcc(asm.Greater, whole)
		g.Jcc(asm.Less, none)
		g.pairsOf(streamSrc, 2*p*row, streamDst, 64*p, 1, true, at)
		g.Jmp(next)
		g.Bind(none)
		g.Zero(0)
		g.I(asm.VMOVUPS, asm.At(streamDst, 64*p), g.V(0))
		g.Jmp(next)
		g.Bind(whole)
		g.pairsOf(streamSrc, 2*p*row, streamDst, 64*p, 1, false, at)
		g.Bind(next)
	}
	g.Add(streamSrc, asm.Imm32(int32(2*tileK*row)))
	g.Add(streamDst, asm.Imm32(tileBytes))
}
