package x86

import (
	"fmt"
	"unsafe"

	"sandwich/microkernel/internal/asm"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// amxTile generates the tile of the chain "block" on AMX: for each span of k that shares scales one
// product of tiles, whose exact integers are the ones of the other dot products, and then the same
// conversion and FMAs. Numbers become bytes with a sign before they are multiplied, once for all
// row tiles of a call.
type amxTile struct {
	int8Tile
	spread bool
	step   asm.Reg   // 64, the distance of rows of W and of sums
	bytes  asm.Reg   // the weights of the sub-block
	sums   asm.Reg   // its sums
	ahead  asm.Reg   // Spread: where the prefetch is
	zeros  asm.Vec   // while unpacking: the number that stands for 0, in every byte
	sumsOf []asm.Vec // integer sums of several rows side by side
	scales []asm.Vec // and their products of scales
}

// amxSideBySide is how many sums are scaled at the same time.
const amxSideBySide = 4

// amxForm is how the numbers of a type become bytes.
func (s spec) amxForm() int8Form {
	f := int8Form{together: 1, temps: 1}
	if d := s.B.Desc(); d.Bits() < 8 {
		f.masks = len(d.Fields)
	}
	return f
}

// newAMX hands out the registers of a tile; emit generates it.
func newAMX(a *asm.Asm, s spec) (_ *emitter, emit func()) {
	spread := s.Spread
	s.Spread = false // prefetches its own way
	e := &amxTile{int8Tile: int8Tile{subBlocks: newSubBlocks(newEmitter(a, s)), form: s.amxForm()}, spread: spread,
		step: rBS, sums: rCount}
	if e.v > 1 {
		e.step = e.pointer() // a single panel leaves rBS free
	}
	e.bytes = e.pointer()
	if spread {
		e.ahead = e.pointer()
	}
	e.w, e.x, e.t = e.vecs(e.v), e.vecs(1), e.vecs(e.form.temps)
	e.sumsOf, e.scales = e.vecs(amxSideBySide), e.vecs(amxSideBySide)
	if e.SubBlocks() > 1 {
		for range len(e.BlockScales) {
			e.heads = append(e.heads, e.vecs(e.v))
		}
	}
	e.forUnpacking()
	return e.emitter, func() {
		e.atEnd = e.TileRelease
		e.function(e.begin, e.rowTile)
	}
}

// forUnpacking hands out the registers that only unpacking needs, from the last on: it is done
// before the accumulators hold anything.
func (e *amxTile) forUnpacking() {
	last := e.s.ISA.Registers()
	vec := func() asm.Vec { last--; return e.reg(last) }
	for range e.form.masks {
		e.masks = append(e.masks, vec())
	}
	if e.Codebook != nil {
		e.table = vec()
	}
	if e.ZeroPoint > 0 {
		e.zeros = vec()
	}
	if e.Made() {
		for range e.v {
			e.made = append(e.made, vec())
		}
	}
}

// Of the tiles, sums come first, at most four, then two of activations and two of weights. CPUs
// wait for a product and for the store of its sums before they clear the same tile, so that
// sub-blocks take turns.
const (
	amxTurns = 4
	amxA     = asm.Tile(4)
	amxB     = asm.Tile(6)
)

// turns is how many sub-blocks have sums in tiles of their own.
func (e *amxTile) turns() int { return amxTurns / (e.spans() * e.v) }

// spans is the spans of a sub-block.
func (e *amxTile) spans() int { return qtype.SubBlockK / e.Span() }

// tileNumber counts the products of the sub-blocks of a turn: of panel j over span i.
func (e *amxTile) tileNumber(turn, i, j int) int { return (turn*e.spans()+i)*e.v + j }

// begin configures the tiles and brings the weights to memory as bytes.
func (e *amxTile) begin() {
	var t amxArgs
	var rows, bytes [8]uint8
	set := func(from asm.Tile, tiles, n, width int) {
		for i := range asm.Tile(tiles) {
			rows[from+i], bytes[from+i] = uint8(n), uint8(width)
		}
	}
	set(0, e.turns()*e.spans()*e.v, e.s.MR, 4*qtype.PanelWidth)
	set(amxA, 2, e.s.MR, e.Span())
	set(amxB, 2, e.Span()/4, 4*qtype.PanelWidth)
	e.SetTiles(rows, bytes)
	ready := e.NewLabel()
	e.Mov(e.bytes, e.arg(unsafe.Offsetof(t.ready)))
	e.Test(e.bytes, e.bytes)
	e.Jcc(asm.NotZero, ready)
	e.setup()
	if e.ZeroPoint > 0 {
		e.I(asm.VPBROADCASTD, e.zeros, e.ConstU32(uint32(e.ZeroPoint)*0x01010101))
	}
	e.loadPointers(e.bBase, rBS, unsafe.Offsetof(t.B), unsafe.Offsetof(t.BStride))
	e.eachSubBlock(1, e.Uncounted, func(int) {
		for j := range e.v {
			e.unpack(j)
		}
	})
	e.MovImm(e.bytes, 1)
	e.Mov(e.arg(unsafe.Offsetof(t.ready)), e.bytes)
	e.Bind(ready)
}

// eachSubBlock runs body for each sub-block, not at all where there is none, so many of them in
// turn, and moves on in the weights and their bytes. count runs what an iteration is made of.
func (e *amxTile) eachSubBlock(turns int, count func(func()), body func(turn int)) {
	var t amxArgs
	done := e.NewLabel()
	next := func(turn, weights int) {
		body(turn)
		e.advanceB(weights)
		e.Add(e.bytes, asm.Imm32(e.v*amxPanelBytes))
	}
	e.Lea(e.bytes, asm.At(rArgs, amxWeights))
	e.Cmp(e.bytes, e.arg(unsafe.Offsetof(t.stop)))
	e.Jcc(asm.AboveOrEqual, done)
	e.Align(32)
	top := e.Here()
	if e.SubBlocks() > 1 {
		count(func() { e.block(min(turns, e.SubBlocks()), next) })
	} else {
		for turn := range turns {
			do := func() { next(turn, e.HeadBytes()+e.SubBlockBytes()) }
			if turn < turns-1 {
				e.Uncounted(do) // as the last one, which is the iteration that is counted
				e.Cmp(e.bytes, e.arg(unsafe.Offsetof(t.stop)))
				e.Jcc(asm.AboveOrEqual, done)
			} else {
				count(do)
			}
		}
	}
	e.Cmp(e.bytes, e.arg(unsafe.Offsetof(t.stop)))
	e.Jcc(asm.Below, top)
	e.Bind(done)
}

// block is the sub-blocks of a block of several, so many in turn.
func (e *amxTile) block(turns int, next func(turn, weights int)) {
	n := e.SubBlocks()
	e.advanceB(e.HeadBytes())
	e.MovImm(e.subBlocks.head, uint64(-int64(e.HeadBytes())))
	if e.atHead != nil {
		e.atHead()
	}
	top := e.Here()
	e.Times(float64(n/turns), func() {
		for turn := range turns {
			next(turn, e.SubBlockBytes())
			e.Sub(e.subBlocks.head, asm.Imm32(e.SubBlockBytes()))
		}
	})
	e.Cmp(e.subBlocks.head, asm.Imm32(-e.HeadBytes()-n*e.SubBlockBytes()))
	e.Jcc(asm.NotZero, top)
}

// unpack brings the weights of panel j of a sub-block to memory as bytes with a sign, [8][16
// columns][4 k].
func (e *amxTile) unpack(j int) {
	if e.made != nil {
		e.make(j, j, e.x[0], e.t[0])
	}
	for g := range qtype.SubBlockK / 4 {
		e.weights(0, j, g)
		if e.ZeroPoint > 0 {
			e.I(asm.VPSUBB, e.w[0], e.w[0], e.zeros)
		}
		e.I(asm.VMOVUPS, asm.At(e.bytes, j*amxPanelBytes+64*g), e.w[0])
	}
}

// rowTile is all k of a row tile.
func (e *amxTile) rowTile() {
	var t amxArgs
	ready := e.NewLabel()
	e.MovImm(e.step, 64)
	e.Lea(e.bytes, asm.At(rArgs, amxWeights))
	e.Lea(e.sums, asm.At(rArgs, amxSums))
	if e.spread {
		e.Mov(e.ahead, e.arg(unsafe.Offsetof(t.Next)))
	}
	for i := range amxAhead {
		e.Cmp(e.bytes, e.arg(unsafe.Offsetof(t.stop)))
		e.Jcc(asm.AboveOrEqual, ready)
		e.multiply(i%e.turns(), i, 0)
		e.keep(i % e.turns())
		e.Add(e.bytes, asm.Imm32(e.v*amxPanelBytes))
		e.Xor(e.sums, asm.Imm32(e.sumsOfSubBlock()))
	}
	e.Bind(ready)
	e.Lea(e.sums, asm.At(rArgs, amxSums))
	if e.heads != nil {
		e.atHead = e.loadHeads
	}
	e.eachSubBlock(e.turns(), e.Counted, e.subBlock)
	if e.spread {
		e.Mov(e.arg(unsafe.Offsetof(t.Next)), e.ahead)
	}
}

// subBlock scales the sums of a sub-block, while the products of the one amxAhead of it are made,
// where there is one: its sums take their place.
func (e *amxTile) subBlock(turn int) {
	var t amxArgs
	end, done := e.NewLabel(), e.NewLabel()
	e.Cmp(e.bytes, e.arg(unsafe.Offsetof(t.last)))
	e.Jcc(asm.AboveOrEqual, end)
	e.multiply(turn, amxAhead, amxAhead*e.v*amxPanelBytes)
	if e.spread {
		e.askAhead()
	}
	e.scaleAll()
	e.keep(turn)
	e.Jmp(done)
	e.Bind(end)
	e.Uncounted(e.scaleAll)
	e.Bind(done)
	e.Xor(e.sums, asm.Imm32(e.sumsOfSubBlock()))
	e.advance(e.aBase, kernel.ActQ8Bytes)
}

// askAhead prefetches from where the next block of weights has been asked for.
func (e *amxTile) askAhead() {
	var t amxArgs
	for j := range e.v {
		for line := range 2 {
			e.Prefetch(asm.T1, strided([]asm.Reg{e.ahead}, rBS, j, 64*line))
		}
	}
	e.Add(e.ahead, e.arg(unsafe.Offsetof(t.step)))
}

// multiply makes the sums of the sub-block so many further on than the rows' pointers are, whose
// weights are so many bytes further than e.bytes: activations, [rows][k], by weights, [k/4][16
// columns][4 k].
func (e *amxTile) multiply(turn, further, bytes int) {
	for i := range e.spans() {
		k := i * e.Span()
		a := amxA + asm.Tile((turn*e.spans()+i)%2)
		e.TileLoad(a, asm.AtIndex(e.aBase[0], rLDA, 1, further*kernel.ActQ8Bytes+kernel.ActQ+k))
		for j := range e.v {
			n := e.tileNumber(turn, i, j)
			b, c := amxB+asm.Tile(n%2), asm.Tile(n)
			e.TileLoad(b, asm.AtIndex(e.bytes, e.step, 1, bytes+j*amxPanelBytes+16*k))
			e.TileZero(c)
			e.TileDot(asm.TDPBSSD, c, a, b)
		}
	}
}

// keep brings these sums to memory.
func (e *amxTile) keep(turn int) {
	for i := range e.spans() {
		for j := range e.v {
			e.TileStore(asm.AtIndex(e.sums, e.step, 1, e.sumAt(i*e.Span(), 0, j)), asm.Tile(e.tileNumber(turn, i, j)))
		}
	}
}

// sumAt is where the sums of row r and panel j are, for the span at k0, among those of a sub-block.
func (e *amxTile) sumAt(k0, r, j int) int {
	return k0/e.Span()*amxSumBytes + (j*e.s.MR+r)*4*qtype.PanelWidth
}

// sumsOfSubBlock is the bytes of the sums of a sub-block, a power of two.
func (e *amxTile) sumsOfSubBlock() int { return e.spans() * amxSumBytes }

// scaleAll adds the sums of a sub-block to the accumulators.
func (e *amxTile) scaleAll() {
	for k := 0; k < qtype.SubBlockK; k += e.Span() {
		for j := range e.v {
			e.scale(e.w[j], j, k)
		}
		e.scaleSums(k)
		if e.Affine() {
			e.offsets(k)
		}
	}
}

// scaleSums adds the sums of the span at k0: conversion, one FMA by the product of the scales.
func (e *amxTile) scaleSums(k0 int) {
	side := amxSideBySide / e.v
	for r0 := 0; r0 < e.s.MR; r0 += side {
		each := func(step func(i, r, j int)) {
			for r := r0; r < min(r0+side, e.s.MR); r++ {
				for j := range e.v {
					step((r-r0)*e.v+j, r, j)
				}
			}
		}
		each(func(i, r, j int) { e.I(asm.VCVTDQ2PS, e.sumsOf[i], asm.At(e.sums, e.sumAt(k0, r, j))) })
		each(func(i, r, j int) { e.bothScales(i, r, j) })
		each(func(i, r, j int) { e.I(asm.VFMADD231PS, e.acc[r*e.v+j], e.sumsOf[i], e.scales[i]) })
	}
}

// bothScales is the product of the scales of row r and panel j, in scales[i]. Panels share the load
// of a row's.
func (e *amxTile) bothScales(i, r, j int) {
	scale := e.a(r, kernel.ActScale)
	switch {
	case e.v == 1:
		e.I(asm.VMULPS, e.scales[i], e.w[0], scale.Bcast())
	case j == 0:
		e.I(asm.VBROADCASTSS, e.x[0], scale)
		fallthrough
	default:
		e.I(asm.VMULPS, e.scales[i], e.w[j], e.x[0])
	}
}

// validateAMX says what the tile registers cannot hold.
func (s spec) validateAMX() error {
	switch {
	case s.MR > amxRows || s.NR > 2*qtype.PanelWidth || s.MR*s.NR > amxRows*qtype.PanelWidth:
		return fmt.Errorf("a tile of amx has up to %d rows of %d columns, or half as many of twice as many", amxRows,
			qtype.PanelWidth)
	case s.Prefetch > 0 || s.Form != kernel.Load:
		return fmt.Errorf("amx has neither a prefetch distance nor embedded broadcasts")
	}
	return nil
}
