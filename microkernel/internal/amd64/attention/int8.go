package attention

import (
	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/kernel"
)

// Registers that the products share: the order of a transposed line, or for want of VPERMB that of
// its words and then that of the bytes of four words, and 128 in each byte.
const (
	lineOrder   = 31
	lineBytesOf = 30
	lineBias    = 29
	lineFactor  = 28 // four integers of a row in every lane
)

// loadLineOrder sets the registers of transposed lines.
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

// loadLine loads a line of a block, transposed, of keys with 128 added to each integer.
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

// integerScores computes the scores of the rows, in whole passes up to the last position that any
// row sees, into scratch. kReg walks over the scales of the panels, count from one set to the next.
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

// scoreSet emits the products of a set of dimensions: integer accumulators in registers 0 and up,
// then those of float32, then the lines of the panels, where their scales come to stand.
func (g *gen) scoreSet(p product, scale int) {
	n := g.Rows * p.columns
	sum := func(r, j int) asm.Vec { return g.V(r*p.columns + j) }
	line := func(j int) asm.Vec { return g.V(2*n + j) }
	for r := range g.Rows {
		g.I(asm.VPBROADCASTD, sum(r, 0), asm.At(aPtr, r*p.rowStride+queryBias))
		for j := 1; j < p.columns; j++ {
			g.I(asm.VMOVAPS, sum(r, j), sum(r, 0))
		}
	}
	for i := range setLines {
		for j := range p.columns {
			g.loadLine(line(j), asm.At(bPtr, j*p.panelStride+i*lineBytes), true)
		}
		g.prefetchTurn(p.lines, i, setLines)
		for r := range g.Rows {
			four := asm.At(aPtr, r*p.rowStride+queryBytes+4*i)
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

// integerValues computes the products of the rows' u with the values, of one set of dimensions
// after the other, and merges them into the running output. kReg counts the sets, in bytes of their
// scales.
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
		g.valueTurn(lines)
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

// valueTurn emits the products of sixteen positions, four lines of each panel. The u of four
// positions stand as integerChances packs them: sixteen bytes on from those of the four before.
func (g *gen) valueTurn(lines int) {
	line := func(j int) asm.Vec { return g.V(g.Rows*setPanels + j) }
	for i := range valueLines {
		for j := range setPanels {
			g.loadLine(line(j), asm.At(bPtr, j*arith.Lanes*positions+i*lineBytes), false)
		}
		g.prefetchTurn(lines, i, valueLines)
		for r := range g.Rows {
			g.I(asm.VPBROADCASTD, g.V(lineFactor), asm.At(aPtr, r*g.sets()*positions+16*i))
			for j := range setPanels {
				g.I(asm.VPDPBUSD, g.V(r*setPanels+j), g.V(lineFactor), line(j))
			}
		}
	}
	g.advanceAhead(lines)
}
