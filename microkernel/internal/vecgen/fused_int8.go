package vecgen

import "sandwich/microkernel/internal/amd64/asm"

// Attention by VPDPBUSD on blocks of int8 (fused8.go): integers are multiplied as integers, and
// what they add up to is exact, so that its order is free. For a row and a block of 64 positions:
//
//	score[pos] = chain over the sets of 32 dimensions, ascending, in float32:
//	             acc = fma(float32(q . k) * kscale[pos][set], qscale[set], acc)
//	w[pos]     = p[pos] * vscale[pos][set], for each set; what is no number counts as none
//	m          = the largest w, at least leastWeight
//	u[pos]     = w[pos] * (255/m) to the nearest integer, ties to even: 0 to 255
//	out[d]     = float32(u . v) * (m * (1/255))
//
// q are the integers of a quantized activation (querySet), p the probabilities that the softmax
// leaves, 0 for what the row does not see, so that neither other rows nor what stands behind the
// last stored position change a bit. Sums stay below 2^24: 32*127*128 and 64*255*128.
//
// The instruction multiplies unsigned bytes by signed ones, four to a lane. Scores take the keys
// with 128 added and begin at -128 times the sum of the query's integers; values are signed and the
// u of four positions are repeated in every lane. A block is cached as lines of 4 dimensions x 16
// positions, or of 4 positions x 16 dimensions; both are transposed to 16 lanes of four bytes.
const (
	querySet   = 48 // bytes of a set of a query, a block of package kernel's ActQ8: scale ...
	queryBias  = 4  // ... -128 times the sum ...
	queryBytes = 8  // ... and the integers
	lineBytes  = 64
	setLines   = scaleDims / 4 // lines of a panel of keys that have the same scales
	setPanels  = scaleDims / group
	valueLines = 4 // lines of a panel of values, sixteen positions
	chanceTop  = 255
	chanceSets = 4 // sets whose largest weights are found side by side
)

// What the chain of integers has beside its integers, for its definition in plain Go too.
const (
	LeastWeight = 0x1p-100
	ChanceStep  = float32(1.0 / chanceTop)
	ChanceTop   = float32(chanceTop)
)

// integers says that the kernel multiplies integers.
func (f Fused) integers() bool { return f.Dot == DPBUSD }

// sets is how many sets of dimensions with scales of their own a head has.
func (f Fused) sets() int { return f.HeadDim / scaleDims }

// What scratch holds behind the probabilities: of each row and set the u of 64 positions; of each
// row the scales that belong to them, in whole vectors of chanceSets; 255/m of the sets at hand;
// and, unless the block has been opened, the scales of values as float32.
func (f Fused) chancesAt() int { return scrP + f.Rows*rowP }

// chanceScalesAt: see chancesAt.
func (f Fused) chanceScalesAt() int { return f.chancesAt() + f.Rows*f.sets()*positions }

// chanceScaleRow is the distance in bytes between the scales of rows.
func (f Fused) chanceScaleRow() int { return (f.sets() + chanceSets - 1) / chanceSets * chanceSets * 4 }

// inversesAt: see chancesAt.
func (f Fused) inversesAt() int { return f.chanceScalesAt() + f.Rows*f.chanceScaleRow() }

// valueScalesAt: see chancesAt.
func (f Fused) valueScalesAt() int { return (f.inversesAt() + 4*chanceSets + 63) &^ 63 }

// integerBytes is ScratchBytes.
func (f Fused) integerBytes() int { return f.valueScalesAt() + 4*positions*f.sets() }

// integerColumns is how many panels of scores have an integer and a float accumulator in registers
// for each row: two where they fit. More, for fewer rows, would read from more places at once, and
// it is memory that those wait for.
func (f Fused) integerColumns() int {
	if f.Rows <= integerFew {
		return 2
	}
	return 1
}

// integerFew is the most rows that have accumulators for two panels of scores in registers, and
// whose products leave little time to the rest.
const integerFew = 6

// Registers that the products share: the order of a transposed line, or for want of VPERMB that of
// its words and then that of the bytes of four words, and 128 in each byte.
const (
	lineOrder   = 31
	lineBytesOf = 30
	lineBias    = 29
	lineFactor  = 28 // four integers of a row in every lane
)

// loadLineOrder sets the registers of transposed lines.
func (g *fused) loadLineOrder() {
	var bytes, words, inLane [16]uint32
	for i := range 16 {
		for b := range 4 {
			bytes[i] |= uint32(16*b+i) << (8 * b)
			inLane[i] |= uint32(4*b+i%4) << (8 * b)
		}
		words[i] = uint32(4*(i%4) + i/4)
	}
	if g.Permute {
		g.I(asm.VMOVUPS, g.v(lineOrder), g.ConstU32s(bytes[:]...))
	} else {
		g.I(asm.VMOVUPS, g.v(lineOrder), g.ConstU32s(words[:]...))
		g.I(asm.VMOVUPS, g.v(lineBytesOf), g.ConstU32s(inLane[:]...))
	}
	g.I(asm.VBROADCASTSS, g.v(lineBias), g.ConstU32(0x80808080))
}

// loadLine loads a line of a block, transposed, of keys with 128 added to each integer.
func (g *fused) loadLine(x asm.Vec, m asm.Mem, keys bool) {
	switch {
	case g.Paired:
		g.I(asm.VMOVUPS, x, m)
		return
	case g.Permute:
		g.I(asm.VPERMB, x, g.v(lineOrder), m)
	default:
		g.I(asm.VPERMD, x, g.v(lineOrder), m)
		g.I(asm.VPSHUFB, x, x, g.v(lineBytesOf))
	}
	if keys {
		g.I(asm.VPXORD, x, x, g.v(lineBias))
	}
}

// integerScores computes the scores of the rows, in whole passes up to the last position that any
// row sees, into scratch. kReg walks over the scales of the panels, count from one set to the next.
func (g *fused) integerScores() {
	panel, scale := group*g.HeadDim, 2
	if g.Paired {
		scale = 4
	}
	g.loadLineOrder()
	g.scorePasses(panel, g.QueryBytes(), func(p product) {
		p.lines = g.integerLines(setLines * p.columns)
		g.Mov(aPtr, qReg)
		for i := range g.Rows * p.columns {
			g.zero(g.Rows*p.columns + i)
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
			g.I(asm.VMOVUPS, asm.At(outPtr, i/p.columns*rowP+64*(i%p.columns)), g.v(g.Rows*p.columns+i))
		}
		g.Add(kReg, asm.Imm32(int32(scale*group*p.columns)))
	})
}

// scoreSet emits the products of a set of dimensions: integer accumulators in registers 0 and up,
// then those of float32, then the lines of the panels, where their scales come to stand.
func (g *fused) scoreSet(p product, scale int) {
	n := g.Rows * p.columns
	sum := func(r, j int) asm.Vec { return g.v(r*p.columns + j) }
	line := func(j int) asm.Vec { return g.v(2*n + j) }
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
			g.I(asm.VPBROADCASTD, g.v(lineFactor), four)
			for j := range p.columns {
				g.I(asm.VPDPBUSD, sum(r, j), line(j), g.v(lineFactor))
			}
		}
	}
	g.advanceAhead(p.lines)
	for j := range p.columns {
		at := asm.AtIndex(kReg, count, 1, positions*g.HeadDim+scale*group*j)
		if g.Paired {
			g.I(asm.VMOVUPS, line(j), at)
		} else {
			g.I(asm.VCVTPH2PS, line(j), at)
		}
	}
	for i := range n {
		g.I(asm.VCVTDQ2PS, g.v(i), g.v(i))
	}
	for i := range n {
		g.I(asm.VMULPS, g.v(i), g.v(i), line(i%p.columns))
	}
	for i := range n {
		g.I(asm.VFMADD231PS, g.v(n+i), g.v(i), asm.At(aPtr, i/p.columns*p.rowStride).Bcast())
	}
}

// integerValues computes the products of the rows' u with the values, of one set of dimensions
// after the other, and merges them into the running output. kReg counts the sets, in bytes of their
// scales.
func (g *fused) integerValues() {
	lines := g.integerLines(setPanels * valueLines)
	g.loadLineOrder()
	g.Lea(outPtr, asm.At(stateReg, StateOut))
	g.Xor(kReg, kReg)
	g.MovImm(passes, uint64(g.sets()))
	g.loopPasses(func() {
		for i := range g.Rows * setPanels {
			g.zero(i)
		}
		g.Mov(bPtr, vReg)
		g.Mov(aPtr, kReg)
		g.Shl(aPtr, 4)
		g.Add(aPtr, scrReg)
		g.Add(aPtr, asm.Imm32(int32(g.chancesAt())))
		g.Mov32(count, asm.At(scrReg, scrLargest))
		g.Add(count, asm.Imm32(group-1))
		g.Shr(count, 4)
		loop := g.Here()
		g.valueTurn(lines)
		g.Add(bPtr, asm.Imm32(valueLines*lineBytes))
		g.Add(aPtr, asm.Imm32(4))
		g.Dec(count)
		g.Jcc(asm.NotZero, loop)
		g.mergeIntegers()
		g.Add(vReg, asm.Imm32(setPanels*group*positions))
		g.Add(outPtr, asm.Imm32(4*scaleDims))
		g.Add(kReg, asm.Imm32(4))
	})
}

// valueTurn emits the products of sixteen positions, four lines of each panel. The u of four
// positions stand as integerChances packs them: sixteen bytes on from those of the four before.
func (g *fused) valueTurn(lines int) {
	line := func(j int) asm.Vec { return g.v(g.Rows*setPanels + j) }
	for i := range valueLines {
		for j := range setPanels {
			g.loadLine(line(j), asm.At(bPtr, j*group*positions+i*lineBytes), false)
		}
		g.prefetchTurn(lines, i, valueLines)
		for r := range g.Rows {
			g.I(asm.VPBROADCASTD, g.v(lineFactor), asm.At(aPtr, r*g.sets()*positions+16*i))
			for j := range setPanels {
				g.I(asm.VPDPBUSD, g.v(r*setPanels+j), g.v(lineFactor), line(j))
			}
		}
	}
	g.advanceAhead(lines)
}

// mergeIntegers is mergeRows for sums of integers, which are never -0.
func (g *fused) mergeIntegers() {
	oldMul, newMul := g.v(g.Rows*setPanels), g.v(g.Rows*setPanels+1)
	g.seeingRows(oldMul, newMul, func(r int) {
		scale := asm.AtIndex(scrReg, kReg, 1, g.chanceScalesAt()+r*g.chanceScaleRow())
		for j := range setPanels {
			acc := g.v(r*setPanels + j)
			g.I(asm.VCVTDQ2PS, acc, acc)
			g.I(asm.VMULPS, acc, acc, scale.Bcast())
			g.mergeInto(asm.At(outPtr, 4*r*g.paddedDim()+64*j), acc, oldMul, newMul)
		}
	})
}
