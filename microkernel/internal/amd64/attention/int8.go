package attention

import (
	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/kernel"
)

// A VPDPBUSD kernel multiplies integers exactly, so the order of its sums is free. For a row and a
// block of 64 positions it computes
//
//	score[pos] = chain over the sets of 32 dimensions, ascending, in float32:
//	             acc = fma(float32(q . k) * kscale[pos][set], qscale[set], acc)
//	w[pos]     = p[pos] * vscale[pos][set], for each set; NaN counts as zero
//	m          = the largest w, at least arith.LeastWeight
//	u[pos]     = w[pos] * (255/m) rounded to the nearest integer, ties to even: 0 to 255
//	out[d]     = float32(u . v) * (m * (1/255))
//
// q are the integers of a quantized activation, p the probabilities after the softmax, 0 for
// positions the row does not see; neither other rows nor positions that were never stored change a
// bit. Sums stay below 2^24: 32*127*128 and 64*255*128.
//
// The instruction multiplies unsigned bytes by signed ones, four per lane. Scores read the keys
// with 128 added and start at -128 times the sum of the query's integers; values are signed, and
// the u of four positions are repeated in every lane. A block is cached as lines of 4 dimensions x
// 16 positions, or of 4 positions x 16 dimensions; both are transposed to 16 lanes of four bytes.

// Registers that the products share.
const (
	lineOrder   = 31 // the byte order of a transposed line; without VPERMB its word order
	lineBytesOf = 30 // without VPERMB: the byte order within four words
	lineBias    = 29 // 128 in each byte
	lineFactor  = 28 // four integers of a row in every lane
)

// loadLineOrder loads the constants of transposed lines.
func (g *gen) loadLineOrder() {
	var bytes, words, inLane [16]uint32
	for i := range 16 {
		for b := range 4 {
			bytes[i] |= uint32(16*b+i) << (8 * b)
			inLane[i] |= uint32(4*b+i%4) << (8 * b)
		}
		words[i] = uint32(4*(i%4) + i/4)
	}
	if g.CPU.Has(kernel.HasVBMI) {
		g.I(asm.VMOVUPS, g.V(lineOrder), g.ConstU32s(bytes[:]...))
	} else {
		g.I(asm.VMOVUPS, g.V(lineOrder), g.ConstU32s(words[:]...))
		g.I(asm.VMOVUPS, g.V(lineBytesOf), g.ConstU32s(inLane[:]...))
	}
	g.I(asm.VBROADCASTSS, g.V(lineBias), g.ConstU32(0x80808080))
}

// loadLine loads a line of a block, transposed, and adds 128 to each integer of keys.
func (g *gen) loadLine(x asm.Vec, m asm.Mem, keys bool) {
	switch {
	case g.Opened:
		g.I(asm.VMOVUPS, x, m)
		return
	case g.CPU.Has(kernel.HasVBMI):
		g.I(asm.VPERMB, x, g.V(lineOrder), m)
	default:
		g.I(asm.VPERMD, x, g.V(lineOrder), m)
		g.I(asm.VPSHUFB, x, x, g.V(lineBytesOf))
	}
	if keys {
		g.I(asm.VPXORD, x, x, g.V(lineBias))
	}
}

// integerScores computes the scores of the rows into scratch, in whole passes up to the last
// position that any row sees. kReg points to the scales of the panels; count is the offset of a
// set.
func (g *gen) integerScores() {
	panel, scale := arith.Lanes*g.HeadDim, 2
	if g.Opened {
		scale = 4
	}
	g.loadLineOrder()
	g.scorePasses(panel, g.queryLen(), func(p product) {
		p.lines = g.integerLines(setLines * p.columns)
		g.Mov(aPtr, qReg)
		for i := range g.Rows * p.columns {
			g.Zero(g.Rows*p.columns + i)
		}
		g.Xor(count, count)
		loop := g.Here()
		g.scoreSet(p, scale)
		g.Add(bPtr, asm.Imm32(setLines*lineBytes))
		g.Add(aPtr, asm.Imm32(querySet))
		g.Add(count, asm.Imm32(int32(scale*positions)))
		g.Cmp(count, asm.Imm32(int32(scale*positions*g.sets())))
		g.Jcc(asm.NotZero, loop)
		for i := range g.Rows * p.columns {
			g.I(asm.VMOVUPS, asm.At(outPtr, i/p.columns*kernel.ScratchRow+64*(i%p.columns)), g.V(g.Rows*p.columns+i))
		}
		g.Add(kReg, asm.Imm32(int32(scale*arith.Lanes*p.columns)))
	})
}

// scoreSet emits the products of a set of dimensions. Integer accumulators are in the first
// registers, float32 accumulators follow, then the lines of the panels, whose registers later hold
// their scales.
func (g *gen) scoreSet(p product, scale int) {
	n := g.Rows * p.columns
	sum := func(r, j int) asm.Vec { return g.V(r*p.columns + j) }
	line := func(j int) asm.Vec { return g.V(2*n + j) }
	for r := range g.Rows {
		g.I(asm.VPBROADCASTD, sum(r, 0), asm.At(aPtr, r*p.rowStride+kernel.ActBias))
		for j := 1; j < p.columns; j++ {
			g.I(asm.VMOVAPS, sum(r, j), sum(r, 0))
		}
	}
	for i := range setLines {
		for j := range p.columns {
			g.loadLine(line(j), asm.At(bPtr, j*p.panelStride+i*lineBytes), true)
		}
		g.prefetchShare(p.lines, i, setLines)
		for r := range g.Rows {
			four := asm.At(aPtr, r*p.rowStride+kernel.ActQ+4*i)
			if p.columns == 1 {
				g.I(asm.VPDPBUSD, sum(r, 0), line(0), four.Bcast())
				continue
			}
			g.I(asm.VPBROADCASTD, g.V(lineFactor), four)
			for j := range p.columns {
				g.I(asm.VPDPBUSD, sum(r, j), line(j), g.V(lineFactor))
			}
		}
	}
	g.advanceAhead(p.lines)
	for j := range p.columns {
		at := asm.AtIndex(kReg, count, 1, positions*g.HeadDim+scale*arith.Lanes*j)
		if g.Opened {
			g.I(asm.VMOVUPS, line(j), at)
		} else {
			g.I(asm.VCVTPH2PS, line(j), at)
		}
	}
	for i := range n {
		g.I(asm.VCVTDQ2PS, g.V(i), g.V(i))
	}
	for i := range n {
		g.I(asm.VMULPS, g.V(i), g.V(i), line(i%p.columns))
	}
	for i := range n {
		g.I(asm.VFMADD231PS, g.V(n+i), g.V(i), asm.At(aPtr, i/p.columns*p.rowStride).Bcast())
	}
}

// integerValues computes the products of the quantized weights with the values, one set of
// dimensions at a time, and merges them into the running output. kReg counts the sets, in bytes of
// their scales.
func (g *gen) integerValues() {
	lines := g.integerLines(setPanels * valueLines)
	g.loadLineOrder()
	g.Lea(outPtr, asm.At(stateReg, kernel.StateOut))
	g.Xor(kReg, kReg)
	g.MovImm(passes, uint64(g.sets()))
	g.loopPasses(func() {
		for i := range g.Rows * setPanels {
			g.Zero(i)
		}
		g.Mov(bPtr, vReg)
		g.Mov(aPtr, kReg)
		g.Shl(aPtr, 4)
		g.Add(aPtr, scrReg)
		g.Add(aPtr, asm.Imm32(int32(g.weightsAt())))
		g.Mov32(count, asm.At(scrReg, kernel.ScratchLargest))
		g.Add(count, asm.Imm32(arith.Lanes-1))
		g.Shr(count, 4)
		loop := g.Here()
		g.valueLinesOf(lines)
		g.Add(bPtr, asm.Imm32(valueLines*lineBytes))
		g.Add(aPtr, asm.Imm32(4))
		g.Dec(count)
		g.Jcc(asm.NotZero, loop)
		g.mergeIntegers()
		g.Add(vReg, asm.Imm32(setPanels*arith.Lanes*positions))
		g.Add(outPtr, asm.Imm32(4*arith.ScaleDims))
		g.Add(kReg, asm.Imm32(4))
	})
}

// valueLinesOf emits the products of sixteen positions, four lines of each panel. integerWeights
// packs the weights so that those of four positions are sixteen bytes apart.
func (g *gen) valueLinesOf(lines int) {
	line := func(j int) asm.Vec { return g.V(g.Rows*setPanels + j) }
	for i := range valueLines {
		for j := range setPanels {
			g.loadLine(line(j), asm.At(bPtr, j*arith.Lanes*positions+i*lineBytes), false)
		}
		g.prefetchShare(lines, i, valueLines)
		for r := range g.Rows {
			g.I(asm.VPBROADCASTD, g.V(lineFactor), asm.At(aPtr, r*g.sets()*positions+16*i))
			for j := range setPanels {
				g.I(asm.VPDPBUSD, g.V(r*setPanels+j), g.V(lineFactor), line(j))
			}
		}
	}
	g.advanceAhead(lines)
}
