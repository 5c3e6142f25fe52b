package gemm

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"sandwich/microkernel/internal/arm64/asm"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// newSMEInt8 allocates the tile of the chain "block" on SME. For each span of k that shares scales
// it computes the exact integer sums of all rows and columns as outer products of four k in the ZA
// array, the products of all their scales as one further outer product, then row by row the
// conversion and the FMA, and one FMA by the offset of weights that have it. Accumulators are
// vectors, because a row of ZA cannot be scaled. Blocks of activations, twelve words per row, are
// loaded into a tile and read back as columns.
func newSMEInt8(a *asm.Asm, s spec) (_ *tile, emit func()) {
	product := func(e *smeInt8) { e.I(asm.SMOPA, smeSums, smeRowBytes, smeAllBytes, smeT, smeW) }
	return &tile{used: s.MR*s.NR/s.smeLanes() + int(smeEnd-smeW)}, func() { emitSMEInt8(a, s, product) }
}

// emitSMEInt8 generates the tile; outer emits the outer product of smeT and smeW, which some
// emulators compute incorrectly.
func emitSMEInt8(a *asm.Asm, s spec, outer func(e *smeInt8)) {
	e := &smeInt8{smeTile: &smeTile{Asm: a, s: s, lanes: s.smeLanes()}, Desc: s.B.Desc(), outer: outer}
	e.function(e.setup, func() {
		e.continued(func() { e.eachAcc(asm.LD1W) }, func() {
			for i := range e.s.MR * e.vectors() {
				e.I(asm.ZDUPB, smeAcc+asm.V(i), asm.Imm(0))
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
		e.eachAcc(asm.ST1W)
	})
}

type smeInt8 struct {
	*smeTile
	*qtype.Desc
	outer func(e *smeInt8)
	slice int // what smeSlice holds, a multiple of four; -1: unknown
}

// The tiles. The last one holds the twelve words of activations or, in vectors of eight lanes,
// eight of them; the others are then in smeMore.
const (
	smeSums     = asm.Imm(0)
	smeProducts = asm.Imm(1) // of scales
	smeMore     = 2
	smeWords    = smeTiles
)

// Registers in addition to those of smeTile.
const (
	smeHead      = asm.X(9)
	smeSubBlocks = asm.X(10)

	smeRowBytes = asm.P(4) // what smeRows and smeAll are, of bytes
	smeAllBytes = asm.P(5)
	smeBlock    = asm.P(6) // words of a block of activations in one vector
	smeRest     = asm.P(7) // and those beyond it

	smeAcc    = asm.V(0) // sixteen: row by row
	smeW      = asm.V(16)
	smeHigh   = asm.V(17)
	smeOrigin = asm.V(18)
	smeTable  = asm.V(19) // levels
	smeScaleA = asm.V(20)
	smeSumA   = asm.V(21) // sums of activations, where weights have offsets
	smeUnit   = asm.V(21) // the unit of scales, where they have not
	smeScale  = asm.V(22)
	smeOffset = asm.V(23) // offsets of weights
	smeT      = asm.V(24)
	smeU      = asm.V(25)
)

// smeEnd is the number after the last register.
const smeEnd = asm.V(32)

// Registers of four rows at a time.
var (
	smeD = [4]asm.V{26, 27, 28, 29}
	smeX = [4]asm.V{30, 31, smeW, smeHigh}
)

// validateSME returns why the tiles of ZA cannot hold the tile, or nil.
func (s spec) validateSME() error {
	lanes := s.smeLanes()
	switch {
	case s.Compute.Quantizes() && s.Dot != kernel.MOPA:
		return fmt.Errorf("outer products of integers are dot product %s", kernel.MOPA)
	case s.Compute.Quantizes() && (s.MR > lanes || s.NR != qtype.PanelWidth):
		return fmt.Errorf("outer products of integers have at most 16 rows, and %d columns", qtype.PanelWidth)
	case s.planes() && s.Prefetches():
		return fmt.Errorf("outer products of the path %s do not support software prefetch", s.Compute)
	case s.Compute.Quantizes():
		return nil
	case s.B.Quantized():
		return fmt.Errorf("float32 outer products do not support quantized weights unless they are first " +
			"converted to float32")
	case s.MR > lanes || s.NR > smeTiles*lanes || s.KU != 16:
		return fmt.Errorf("outer products have KU 16 and at most 16 rows and %d columns", smeTiles*16)
	}
	return nil
}

// setup sets the predicates and the constants.
func (e *smeInt8) setup() {
	bytes := func(p asm.P, words int) {
		e.MovImm(smeTmp, 4*words)
		e.I(asm.WHILELOB, p, asm.ZR, smeTmp)
	}
	bytes(smeRowBytes, e.s.MR)
	bytes(smeAllBytes, e.lanes)
	const words = kernel.ActQ8Bytes / 4
	e.count(smeBlock, min(words, e.lanes))
	e.count(smeRest, max(0, words-e.lanes))
	e.constants()
}

// constants loads the constants of unpacking.
func (e *smeInt8) constants() {
	if e.ZeroPoint > 0 {
		e.I(asm.ZDUPB, smeOrigin, asm.Imm(int8(e.ZeroPoint)))
	}
	if e.Codebook != nil {
		var levels [16]byte
		for i, l := range e.Codebook {
			levels[i] = byte(l)
		}
		e.ConstQ(smeTable, levels)
	}
	if len(e.Fields) > 1 {
		e.I(asm.ZDUPB, e.secondMask(), asm.Imm((1<<e.Fields[1].Bits-1)<<e.Fields[0].Bits))
	}
	if e.Unit != 0 {
		var word [16]byte
		binary.LittleEndian.PutUint32(word[:], math.Float32bits(e.Unit))
		e.ConstQ(smeUnit, word)
		e.I(asm.ZDUPS, smeUnit, smeUnit, asm.Imm(0))
	}
}

// secondMask returns the register of the mask of the second bit field: that of the codebook, or of
// offsets, which weights with a codebook do not have.
func (e *smeInt8) secondMask() asm.V {
	if e.Codebook != nil {
		return smeOffset
	}
	return smeTable
}

// at selects slice n of a tile: it sets smeSlice and returns the offset to use with it.
func (e *smeInt8) at(n int) asm.Imm {
	if n&^3 != e.slice {
		e.slice = n &^ 3
		e.MovImm(smeSlice, e.slice)
	}
	return asm.Imm(n % 4)
}

// eachAcc loads or stores the accumulators.
func (e *smeInt8) eachAcc(move *asm.Op) {
	var t kernel.TileArgs
	e.get(smeRow, unsafe.Offsetof(t.C))
	e.get(smeStep, unsafe.Offsetof(t.LDC))
	for r := range e.s.MR {
		for v := range e.vectors() {
			e.AddImm(smeTmp, smeRow, 4*e.lanes*v)
			e.I(move, e.acc(r, v), e.mask(v), smeTmp)
		}
		e.I(asm.ADD, smeRow, smeRow, smeStep)
	}
}

// acc returns the accumulator of row r, vector v.
func (e *smeInt8) acc(r, v int) asm.V { return smeAcc + asm.V(r*e.vectors()+v) }

// blocks runs body for each sub-block of the blocks of a panel. smeB is at the head of a block of
// one sub-block, otherwise at the current sub-block.
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

// inSubBlock sets smeTmp to the address of bytes of the sub-block.
func (e *smeInt8) inSubBlock(bytes int) {
	if e.SubBlocks() == 1 {
		bytes += e.HeadBytes()
	}
	e.AddImm(smeTmp, smeB, bytes)
}

// inHead sets smeTmp to the address of bytes of the head of the block.
func (e *smeInt8) inHead(bytes int) {
	base := smeHead
	if e.SubBlocks() == 1 {
		base = smeB
	}
	e.AddImm(smeTmp, base, bytes)
}

// activations loads the current block of all rows, advances to the next, and prefetches weights.
func (e *smeInt8) activations() {
	var t kernel.TileArgs
	e.MovX(smeRow, smeA)
	e.get(smeStep, unsafe.Offsetof(t.LDA))
	e.rows(func() {
		e.I(asm.LD1ZA, asm.Imm(smeWords), smeBlock, smeRow)
		if e.lanes == 8 {
			e.AddImm(smeTmp, smeRow, 4*e.lanes)
			e.I(asm.LD1ZA, asm.Imm(smeMore), smeRest, smeTmp)
		}
		e.I(asm.ADD, smeRow, smeRow, smeStep)
	})
	e.slice = -1
	e.AddImm(smeA, smeA, kernel.ActQ8Bytes)
	e.column(smeScaleA, kernel.ActScale/4)
	for at := 0; e.s.Prefetch > 0 && at < e.SubBlockBytes(); at += 64 {
		e.I(asm.PRFM1, smeB, asm.Imm(e.s.Prefetch+at))
	}
}

// column loads a word of the activation blocks of all rows into v.
func (e *smeInt8) column(v asm.V, word int) {
	tile := asm.Imm(smeWords)
	if word >= e.lanes {
		tile, word = smeMore, word-e.lanes
	}
	off := e.at(word)
	e.I(asm.COLUMN, v, smeRows, tile, off)
}

// part emits the span of k starting at k0 of vector v.
func (e *smeInt8) part(v, k0 int) {
	e.I(asm.ZEROTILE, smeSums)
	if e.Made() {
		e.make(v)
	}
	for g := k0 / 4; g < (k0+e.Span())/4; g++ {
		e.numbers(v, g)
		e.column(smeT, kernel.ActQ/4+g)
		e.outer(e)
	}
	e.scales(v, k0)
	e.I(asm.ZEROTILE, smeProducts)
	e.I(asm.FMOPA, smeProducts, smeRows, smeAll, smeScaleA, smeScale)
	if e.Affine() && v == 0 {
		e.sums(k0)
	}
	for r0 := 0; r0 < e.s.MR; r0 += len(smeD) {
		e.accumulate(v, r0, min(len(smeD), e.s.MR-r0))
	}
}

// numbers loads group g of the sub-block of vector v into smeW: four signed bytes per column.
func (e *smeInt8) numbers(v, g int) {
	low, bit := e.Fields[0].Bits, e.word(smeW, v, g, 0)
	if up := 8 - low - bit; up > 0 { // what lies above falls out
		e.I(asm.ZLSLB, smeW, smeW, asm.Imm(up))
	}
	if low < 8 {
		e.I(asm.ZLSRB, smeW, smeW, asm.Imm(8-low))
	}
	if e.Shift > 0 {
		e.I(asm.ZLSLB, smeW, smeW, asm.Imm(e.Shift))
	}
	if len(e.Fields) > 1 {
		e.second(v, g)
	}
	if e.Codebook != nil {
		e.I(asm.ZTBL, smeW, smeTable, smeW)
	}
	if e.ZeroPoint > 0 {
		e.I(asm.ZSUBB, smeW, smeW, smeOrigin)
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
		e.I(asm.ZLSLB, smeHigh, from, asm.Imm(low-bit))
		from = smeHigh
	case bit > low:
		e.I(asm.ZLSRB, smeHigh, from, asm.Imm(bit-low))
		from = smeHigh
	}
	e.I(asm.ZAND, smeHigh, from, e.secondMask())
	e.I(asm.ZORR, smeW, smeW, smeHigh)
}

// word loads the words of vector v that hold a bit field of group g, and returns its position in
// each byte.
func (e *smeInt8) word(z asm.V, v, g, plane int) (bit int) {
	at, bit := e.Place(g, plane)
	e.inSubBlock(at + 4*e.lanes*v)
	e.I(asm.LD1W, z, smeAll, smeTmp)
	return bit
}

// sums loads the sums of the activations of the span, times their scale, into smeSumA.
func (e *smeInt8) sums(k0 int) {
	if e.Span() == qtype.SubBlockK {
		e.column(smeSumA, kernel.ActSum/4)
		return
	}
	e.column(smeSumA, kernel.ActHalfSums/4)
	if k0 == 0 {
		e.I(asm.ZLSLS, smeSumA, smeSumA, asm.Imm(16))
	}
	e.I(asm.ZASRS, smeSumA, smeSumA, asm.Imm(16))
	e.I(asm.ZSCVTF, smeSumA, smeRows, smeSumA)
	e.I(asm.ZFMUL, smeSumA, smeSumA, smeScaleA)
}

// accumulate adds the sums of n rows starting at r0, a multiple of four, to the chains of vector
// v.
func (e *smeInt8) accumulate(v, r0, n int) {
	e.at(r0)
	for i, d := range smeD[:n] {
		e.I(asm.ROW, d, smeAll, smeSums, asm.Imm(i))
	}
	for i, x := range smeX[:n] {
		e.I(asm.ROW, x, smeAll, smeProducts, asm.Imm(i))
	}
	for _, d := range smeD[:n] {
		e.I(asm.ZSCVTF, d, smeAll, d)
	}
	for i, d := range smeD[:n] {
		e.I(asm.ZFMLA, e.acc(r0+i, v), smeAll, d, smeX[i])
	}
	if !e.Affine() {
		return
	}
	add := asm.ZFMLA
	if e.Subs != qtype.NoSubs {
		add = asm.ZFMLS // the K types take their offset off
	}
	for i, d := range smeD[:n] {
		e.I(asm.ZDUPS, d, smeSumA, asm.Imm(r0+i))
	}
	for i, d := range smeD[:n] {
		e.I(add, e.acc(r0+i, v), smeAll, smeOffset, d)
	}
}
