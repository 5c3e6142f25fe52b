package arm

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"sandwich/microkernel/internal/a64"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// newSMEInt8 is the tile of the chain "block" on SME: for a span of k that shares scales the exact
// integer sums of all rows and columns as outer products of four k in the ZA array, the products of
// all their scales as one outer product more, then row by row the conversion and the FMA; then one
// FMA by the offset where weights have it. Accumulators are vectors: a row of ZA cannot be scaled.
// Blocks of activations, twelve words a row, are loaded into a tile and read back as columns.
func newSMEInt8(a *a64.Asm, s spec) (_ *tile, emit func()) {
	product := func(e *smeInt8) { e.I(a64.SMOPA, smeSums, smeRowBytes, smeAllBytes, smeT, smeW) }
	return &tile{used: s.MR*s.NR/s.smeLanes() + int(smeEnd-smeW)}, func() { emitSMEInt8(a, s, product) }
}

// emitSMEInt8 generates the tile with the outer product of smeT and smeW as given: emulators exist
// that get it wrong.
func emitSMEInt8(a *a64.Asm, s spec, outer func(e *smeInt8)) {
	e := &smeInt8{smeTile: &smeTile{Asm: a, s: s, lanes: s.smeLanes()}, Desc: s.B.Desc(), outer: outer}
	e.function(e.setup, func() {
		e.continued(func() { e.eachAcc(a64.LD1W) }, func() {
			for i := range e.s.MR * e.vectors() {
				e.I(a64.ZDUPB, smeAcc+a64.V(i), a64.Imm(0))
			}
		})
		e.blocks(func() {
			e.activations()
			for k := 0; k < qtype.SubBlockK; k += e.Span() {
				for v := range e.vectors() {
					e.part(v, k)
				}
			}
		})
		e.eachAcc(a64.ST1W)
	})
}

type smeInt8 struct {
	*smeTile
	*qtype.Desc
	outer func(e *smeInt8)
	slice int // what smeSlice holds, a multiple of four; -1: unknown
}

// The tiles. Of activations, the last one has all twelve words or, in vectors of eight lanes,
// eight; the others are then in smeMore.
const (
	smeSums     = a64.Imm(0)
	smeProducts = a64.Imm(1) // of scales
	smeMore     = 2
	smeWords    = smeTiles
)

// Registers, beyond those of smeTile.
const (
	smeHead      = a64.X(9)
	smeSubBlocks = a64.X(10)

	smeRowBytes = a64.P(4) // what smeRows and smeAll are, of bytes
	smeAllBytes = a64.P(5)
	smeBlock    = a64.P(6) // words of a block of activations in one vector
	smeRest     = a64.P(7) // and those beyond it

	smeAcc    = a64.V(0) // sixteen: row by row
	smeW      = a64.V(16)
	smeHigh   = a64.V(17)
	smeOrigin = a64.V(18)
	smeTable  = a64.V(19) // levels
	smeScaleA = a64.V(20)
	smeSumA   = a64.V(21) // sums of activations, where weights have offsets
	smeUnit   = a64.V(21) // the unit of scales, where they have not
	smeScale  = a64.V(22)
	smeOffset = a64.V(23) // offsets of weights
	smeT      = a64.V(24)
	smeU      = a64.V(25)
)

// smeEnd is behind the last register.
const smeEnd = a64.V(32)

// Registers of four rows at a time.
var (
	smeD = [4]a64.V{26, 27, 28, 29}
	smeX = [4]a64.V{30, 31, smeW, smeHigh}
)

// validateSME says what the tiles of ZA cannot hold.
func (s spec) validateSME() error {
	lanes := s.smeLanes()
	switch {
	case s.Compute == kernel.ComputeInt8 && s.Dot != kernel.MOPA:
		return fmt.Errorf("outer products of integers are dot product %s", kernel.MOPA)
	case s.Compute == kernel.ComputeInt8 && (s.MR > lanes || s.NR != qtype.PanelWidth):
		return fmt.Errorf("outer products of integers have at most 16 rows, and %d columns", qtype.PanelWidth)
	case s.Compute == kernel.ComputeInt8:
		return nil
	case s.B.Quantized():
		return fmt.Errorf("outer products of float32 are for weights without scales, or widened ones")
	case s.MR > lanes || s.NR > smeTiles*lanes || s.KU != 16:
		return fmt.Errorf("outer products have KU 16 and at most 16 rows and %d columns", smeTiles*16)
	}
	return nil
}

// setup sets the predicates and the constants.
func (e *smeInt8) setup() {
	bytes := func(p a64.P, words int) {
		e.MovImm(smeTmp, 4*words)
		e.I(a64.WHILELOB, p, a64.ZR, smeTmp)
	}
	bytes(smeRowBytes, e.s.MR)
	bytes(smeAllBytes, e.lanes)
	const words = kernel.ActQ8Bytes / 4
	e.count(smeBlock, min(words, e.lanes))
	e.count(smeRest, max(0, words-e.lanes))
	if e.ZeroPoint > 0 {
		e.I(a64.ZDUPB, smeOrigin, a64.Imm(int8(e.ZeroPoint)))
	}
	if e.Codebook != nil {
		var levels [16]byte
		for i, l := range e.Codebook {
			levels[i] = byte(l)
		}
		e.ConstQ(smeTable, levels)
	}
	if len(e.Fields) > 1 {
		e.I(a64.ZDUPB, e.secondMask(), a64.Imm((1<<e.Fields[1].Bits-1)<<e.Fields[0].Bits))
	}
	if e.Unit != 0 {
		var word [16]byte
		binary.LittleEndian.PutUint32(word[:], math.Float32bits(e.Unit))
		e.ConstQ(smeUnit, word)
		e.I(a64.ZDUPS, smeUnit, smeUnit, a64.Imm(0))
	}
}

// secondMask is the register of the mask of the second bit field of numbers: that of levels, or of
// offsets, which weights with levels do not have.
func (e *smeInt8) secondMask() a64.V {
	if e.Codebook != nil {
		return smeOffset
	}
	return smeTable
}

// at makes smeSlice mean slice n of a tile, together with the offset that it returns.
func (e *smeInt8) at(n int) a64.Imm {
	if n&^3 != e.slice {
		e.slice = n &^ 3
		e.MovImm(smeSlice, e.slice)
	}
	return a64.Imm(n % 4)
}

// eachAcc loads or stores the accumulators.
func (e *smeInt8) eachAcc(move *a64.Op) {
	var t kernel.TileArgs
	e.get(smeRow, unsafe.Offsetof(t.C))
	e.get(smeStep, unsafe.Offsetof(t.LDC))
	for r := range e.s.MR {
		for v := range e.vectors() {
			e.AddImm(smeTmp, smeRow, 4*e.lanes*v)
			e.I(move, e.acc(r, v), e.mask(v), smeTmp)
		}
		e.I(a64.ADD, smeRow, smeRow, smeStep)
	}
}

// acc is the accumulator of row r, vector v.
func (e *smeInt8) acc(r, v int) a64.V { return smeAcc + a64.V(r*e.vectors()+v) }

// blocks runs body once for each sub-block of the blocks of a panel. In a block of one sub-block
// smeB stands at its head, else at the present sub-block.
func (e *smeInt8) blocks(body func()) {
	var t kernel.TileArgs
	done := e.NewLabel()
	e.get(smeA, unsafe.Offsetof(t.A))
	e.get(smeB, unsafe.Offsetof(t.B))
	e.get(smeLeft, unsafe.Offsetof(t.Main))
	e.CBZ(smeLeft, done)
	e.Loop(smeLeft, func() {
		n := e.SubBlocks()
		if n == 1 {
			e.slice = -1
			body()
			e.AddImm(smeB, smeB, e.HeadBytes()+e.SubBlockBytes())
			return
		}
		e.MovX(smeHead, smeB)
		e.AddImm(smeB, smeB, e.HeadBytes())
		e.MovImm(smeSubBlocks, n)
		e.Loop(smeSubBlocks, func() {
			e.slice = -1
			body()
			e.AddImm(smeB, smeB, e.SubBlockBytes())
		})
	})
	e.Bind(done)
}

// inSubBlock and inHead make smeTmp the address of bytes of the sub-block, and of the head of the
// block.
func (e *smeInt8) inSubBlock(bytes int) {
	if e.SubBlocks() == 1 {
		bytes += e.HeadBytes()
	}
	e.AddImm(smeTmp, smeB, bytes)
}

func (e *smeInt8) inHead(bytes int) {
	base := smeHead
	if e.SubBlocks() == 1 {
		base = smeB
	}
	e.AddImm(smeTmp, base, bytes)
}

// activations loads the present block of all rows, moves on to the next, and prefetches weights.
func (e *smeInt8) activations() {
	var t kernel.TileArgs
	e.MovX(smeRow, smeA)
	e.get(smeStep, unsafe.Offsetof(t.LDA))
	e.rows(func() {
		e.I(a64.LD1ZA, a64.Imm(smeWords), smeBlock, smeRow)
		if e.lanes == 8 {
			e.AddImm(smeTmp, smeRow, 4*e.lanes)
			e.I(a64.LD1ZA, a64.Imm(smeMore), smeRest, smeTmp)
		}
		e.I(a64.ADD, smeRow, smeRow, smeStep)
	})
	e.slice = -1
	e.AddImm(smeA, smeA, kernel.ActQ8Bytes)
	e.column(smeScaleA, kernel.ActScale/4)
	for at := 0; e.s.Prefetch > 0 && at < e.SubBlockBytes(); at += 64 {
		e.I(a64.PRFM1, smeB, a64.Imm(e.s.Prefetch+at))
	}
}

// column brings a word of the activation blocks of all rows into v.
func (e *smeInt8) column(v a64.V, word int) {
	tile := a64.Imm(smeWords)
	if word >= e.lanes {
		tile, word = smeMore, word-e.lanes
	}
	off := e.at(word)
	e.I(a64.COLUMN, v, smeRows, tile, off)
}

// part is the span of k from k0 on, of vector v.
func (e *smeInt8) part(v, k0 int) {
	e.I(a64.ZEROTILE, smeSums)
	if e.Made() {
		e.make(v)
	}
	for g := k0 / 4; g < (k0+e.Span())/4; g++ {
		e.numbers(v, g)
		e.column(smeT, kernel.ActQ/4+g)
		e.outer(e)
	}
	e.scales(v, k0)
	e.I(a64.ZEROTILE, smeProducts)
	e.I(a64.FMOPA, smeProducts, smeRows, smeAll, smeScaleA, smeScale)
	if e.Affine() && v == 0 {
		e.sums(k0)
	}
	for r0 := 0; r0 < e.s.MR; r0 += len(smeD) {
		e.accumulate(v, r0, min(len(smeD), e.s.MR-r0))
	}
}

// numbers brings group g of the sub-block, of vector v, into smeW: four bytes for each column, with
// their sign.
func (e *smeInt8) numbers(v, g int) {
	low, bit := e.Fields[0].Bits, e.word(smeW, v, g, 0)
	if up := 8 - low - bit; up > 0 { // what lies above falls out
		e.I(a64.ZLSLB, smeW, smeW, a64.Imm(up))
	}
	if low < 8 {
		e.I(a64.ZLSRB, smeW, smeW, a64.Imm(8-low))
	}
	if e.Shift > 0 {
		e.I(a64.ZLSLB, smeW, smeW, a64.Imm(e.Shift))
	}
	if len(e.Fields) > 1 {
		e.second(v, g)
	}
	if e.Codebook != nil {
		e.I(a64.ZTBL, smeW, smeTable, smeW)
	}
	if e.ZeroPoint > 0 {
		e.I(a64.ZSUBB, smeW, smeW, smeOrigin)
	}
}

// second joins the second bit field of numbers to the first.
func (e *smeInt8) second(v, g int) {
	from, low, bit := smeHigh, e.Low(1), 0
	if e.Made() {
		from = smeMade
		_, bit = e.Place(g, 1)
	} else {
		bit = e.word(smeHigh, v, g, 1)
	}
	switch {
	case bit < low:
		e.I(a64.ZLSLB, smeHigh, from, a64.Imm(low-bit))
		from = smeHigh
	case bit > low:
		e.I(a64.ZLSRB, smeHigh, from, a64.Imm(bit-low))
		from = smeHigh
	}
	e.I(a64.ZAND, smeHigh, from, e.secondMask())
	e.I(a64.ZORR, smeW, smeW, smeHigh)
}

// word loads the words of vector v that hold a bit field of group g, and says at which bit of each
// byte.
func (e *smeInt8) word(z a64.V, v, g, plane int) (bit int) {
	at, bit := e.Place(g, plane)
	e.inSubBlock(at + 4*e.lanes*v)
	e.I(a64.LD1W, z, smeAll, smeTmp)
	return bit
}

// sums brings the sums of the activations of the span, times their scale, into smeSumA.
func (e *smeInt8) sums(k0 int) {
	if e.Span() == qtype.SubBlockK {
		e.column(smeSumA, kernel.ActSum/4)
		return
	}
	e.column(smeSumA, kernel.ActHalfSums/4)
	if k0 == 0 {
		e.I(a64.ZLSLS, smeSumA, smeSumA, a64.Imm(16))
	}
	e.I(a64.ZASRS, smeSumA, smeSumA, a64.Imm(16))
	e.I(a64.ZSCVTF, smeSumA, smeRows, smeSumA)
	e.I(a64.ZFMUL, smeSumA, smeSumA, smeScaleA)
}

// accumulate adds the sums of n rows from r0 on, a multiple of four, to the chains of vector v.
func (e *smeInt8) accumulate(v, r0, n int) {
	e.at(r0)
	for i, d := range smeD[:n] {
		e.I(a64.ROW, d, smeAll, smeSums, a64.Imm(i))
	}
	for i, x := range smeX[:n] {
		e.I(a64.ROW, x, smeAll, smeProducts, a64.Imm(i))
	}
	for _, d := range smeD[:n] {
		e.I(a64.ZSCVTF, d, smeAll, d)
	}
	for i, d := range smeD[:n] {
		e.I(a64.ZFMLA, e.acc(r0+i, v), smeAll, d, smeX[i])
	}
	if !e.Affine() {
		return
	}
	add := a64.ZFMLA
	if e.Subs != qtype.NoSubs {
		add = a64.ZFMLS // the K types take their offset off
	}
	for i, d := range smeD[:n] {
		e.I(a64.ZDUPS, d, smeSumA, a64.Imm(r0+i))
	}
	for i, d := range smeD[:n] {
		e.I(add, e.acc(r0+i, v), smeAll, smeOffset, d)
	}
}
