package x86

import (
	"fmt"
	"unsafe"

	"sandwich/microkernel/internal/asm"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// amxRows is the rows of a tile register.
const amxRows = 16

// amxArgs is what a tile function of Dot AMX gets: weights as bytes, and the sums of spans, pass
// through memory, since tiles are loaded from there, and AMX cannot scale them.
type amxArgs struct {
	kernel.TileArgs
	// bytes from the weights of a sub-block to those of the next: amxSubBlockBytes, or 0 where each
	// sub-block takes the place of the one before
	each  uintptr
	keep  uintptr            // 1: they stay for the row tiles after the first
	ready uintptr            // 1: they are there
	work  [amxWork + 64]byte // of which the function takes what begins at a multiple of 64
}

// amxKept is amxArgs with room for the weights of amxSubBlocks sub-blocks.
type amxKept struct {
	amxArgs
	_ [(amxSubBlocks - 1) * amxSubBlockBytes]byte // goes on where work ends
}

// The work space: for each span of k that shares scales, at most two in a sub-block, [16 rows][16
// columns]int32 sums; then weights, [8][16 columns][4 k]int8 for each sub-block.
const (
	amxSumBytes      = 4 * amxRows * qtype.PanelWidth
	amxSubBlockBytes = qtype.SubBlockK * qtype.PanelWidth
	amxWeights       = 2 * amxSumBytes
	amxWork          = amxWeights + amxSubBlockBytes
	amxSubBlocks     = 32 // 16 KiB, a third of the first-level cache of the CPUs that have AMX
)

// runAMX is one call of a kernel of Dot AMX.
func runAMX(k *kernel.Tiles, g *kernel.GemmArgs) {
	if keepsWeights(k, g) {
		var args amxKept
		aimAMX(k, &args.amxArgs, g)
		k.RunRows(&args.TileArgs, g, 1)
	} else {
		var args amxArgs
		aimAMX(k, &args, g)
		k.RunRows(&args.TileArgs, g, 1)
	}
}

// keepsWeights says that several row tiles share the bytes of weights, and that there is room for
// all of them.
func keepsWeights(k *kernel.Tiles, g *kernel.GemmArgs) bool {
	return g.M > k.Spec.MR && g.K1-g.K0 <= amxSubBlocks*qtype.SubBlockK
}

// aimAMX is the arguments of a call of a kernel of Dot AMX.
func aimAMX(k *kernel.Tiles, args *amxArgs, g *kernel.GemmArgs) {
	args.TileArgs = k.Args(g, g.N)
	args.each, args.keep, args.ready = 0, 0, 0
	if keepsWeights(k, g) {
		args.each, args.keep = amxSubBlockBytes, 1
	}
}

// amxTile generates the tile of the chain "block" on AMX: for each span of k that shares scales one
// product of tiles, whose exact integers are the ones of the other dot products, and then the same
// conversion and FMAs. Numbers become bytes with a sign before they are multiplied, which the first
// row tile does for all of a call where there is room.
type amxTile struct {
	int8Tile
	step   asm.Reg   // 64, the distance of rows of W and of sums; a single panel leaves this register free
	work   asm.Reg   // amxArgs.work
	bytes  asm.Reg   // the weights of the sub-block
	zeros  asm.Vec   // the number that stands for 0, in every byte
	sumsOf []asm.Vec // integer sums of several rows side by side
	scales []asm.Vec // and their products of scales
}

// amxSideBySide is how many rows are scaled at the same time.
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
	e := &amxTile{int8Tile: int8Tile{subBlocks: newSubBlocks(newEmitter(a, s)), form: s.amxForm()}, step: rBS}
	e.work, e.bytes = e.pointer(), e.pointer()
	e.w, e.x, e.t = e.vecs(1), e.vecs(1), e.vecs(e.form.temps)
	e.sumsOf, e.scales = e.vecs(amxSideBySide), e.vecs(amxSideBySide)
	e.masks = e.vecs(e.form.masks)
	if e.Codebook != nil {
		e.table = e.vec()
	}
	if e.ZeroPoint > 0 {
		e.zeros = e.vec()
	}
	if e.Made() {
		e.made = e.vecs(1)
	}
	if e.SubBlocks() > 1 {
		for range len(e.BlockScales) {
			e.heads = append(e.heads, e.vecs(1))
		}
		e.atHead = e.loadHeads
	}
	return e.emitter, func() {
		e.atEnd = e.TileRelease
		e.function(e.begin, e.rowTile)
	}
}

// rowTile is all k of a row tile, in one of two loops: the first tile makes bytes of the weights,
// and those after it may find them.
func (e *amxTile) rowTile() {
	var t amxArgs
	again, done := e.NewLabel(), e.NewLabel()
	e.Lea(e.bytes, asm.At(e.work, amxWeights))
	e.Mov(e.step, e.arg(unsafe.Offsetof(t.ready)))
	e.Test(e.step, e.step)
	e.MovImm(e.step, 64)
	e.Jcc(asm.NotZero, again)
	e.blocks(e.mainLoop, func() {
		e.unpack()
		e.subBlock()
		e.Add(e.bytes, e.arg(unsafe.Offsetof(t.each)))
	})
	e.Mov(e.bytes, e.arg(unsafe.Offsetof(t.keep)))
	e.Mov(e.arg(unsafe.Offsetof(t.ready)), e.bytes)
	e.Jmp(done)
	e.Bind(again)
	e.blocks(e.mainLoop, func() {
		e.subBlock()
		e.Add(e.bytes, asm.Imm32(amxSubBlockBytes))
	})
	e.Bind(done)
}

// subBlock is the 32 k of a sub-block whose weights are bytes.
func (e *amxTile) subBlock() {
	for k := 0; k < qtype.SubBlockK; k += e.Span() {
		e.product(k)
	}
	for k := 0; k < qtype.SubBlockK; k += e.Span() {
		e.scale(e.w[0], 0, k)
		e.scaleSums(k)
		if e.Affine() {
			e.offsets(k)
		}
	}
	e.advance(e.aBase, kernel.ActQ8Bytes)
}

// The tiles of a span; the second span of a sub-block has the next three.
const (
	amxC asm.Tile = iota // sums
	amxA                 // activations
	amxB                 // weights
	amxSpan
)

// begin configures the tiles and loads the constants.
func (e *amxTile) begin() {
	e.Lea(e.work, asm.At(rArgs, int(unsafe.Offsetof(amxArgs{}.work))+63))
	e.And(e.work, asm.Imm32(-64))
	var rows, bytes [8]uint8
	for t := 0; t < qtype.SubBlockK/e.Span()*int(amxSpan); t += int(amxSpan) {
		copy(rows[t:], []uint8{uint8(e.s.MR), uint8(e.s.MR), uint8(e.Span() / 4)})
		copy(bytes[t:], []uint8{4 * qtype.PanelWidth, uint8(e.Span()), 4 * qtype.PanelWidth})
	}
	c := asm.TileConfig(rows, bytes)
	e.LdTileCfg(e.Const(c[:]))
	e.setup()
	if e.ZeroPoint > 0 {
		e.I(asm.VPBROADCASTD, e.zeros, e.ConstU32(uint32(e.ZeroPoint)*0x01010101))
	}
}

// unpack brings the weights of a sub-block to memory as bytes with a sign, [8][16 columns][4 k].
func (e *amxTile) unpack() {
	if e.made != nil {
		e.make(0, 0, e.x[0], e.t[0])
	}
	for g := range qtype.SubBlockK / 4 {
		e.weights(0, 0, g)
		if e.ZeroPoint > 0 {
			e.I(asm.VPSUBB, e.w[0], e.w[0], e.zeros)
		}
		e.I(asm.VMOVUPS, asm.At(e.bytes, 64*g), e.w[0])
	}
}

// product multiplies the span of k from k0 on: activations, [rows][k], by weights, [k/4][16
// columns][4 k].
func (e *amxTile) product(k0 int) {
	t := asm.Tile(k0 / e.Span() * int(amxSpan))
	e.TileLoad(t+amxA, asm.AtIndex(e.aBase[0], rLDA, 1, kernel.ActQ+k0))
	e.TileLoad(t+amxB, asm.AtIndex(e.bytes, e.step, 1, 16*k0))
	e.TileZero(t + amxC)
	e.TileDot(asm.TDPBSSD, t+amxC, t+amxA, t+amxB)
	e.TileStore(asm.AtIndex(e.work, e.step, 1, e.sums(k0, 0)), t+amxC)
}

// sums is where in the work space the sums of row r are, for the span at k0.
func (e *amxTile) sums(k0, r int) int { return k0/e.Span()*amxSumBytes + r*4*qtype.PanelWidth }

// scaleSums adds the sums of the span at k0 to the accumulators: conversion, one FMA by the product
// of the scales.
func (e *amxTile) scaleSums(k0 int) {
	for r0 := 0; r0 < e.s.MR; r0 += amxSideBySide {
		each := func(step func(i, r int)) {
			for r := r0; r < min(r0+amxSideBySide, e.s.MR); r++ {
				step(r-r0, r)
			}
		}
		each(func(i, r int) { e.I(asm.VCVTDQ2PS, e.sumsOf[i], asm.At(e.work, e.sums(k0, r))) })
		each(func(i, r int) { e.I(asm.VMULPS, e.scales[i], e.w[0], e.a(r, kernel.ActScale).Bcast()) })
		each(func(i, r int) { e.I(asm.VFMADD231PS, e.acc[r], e.sumsOf[i], e.scales[i]) })
	}
}

// validateAMX says what the tile registers cannot hold.
func (s spec) validateAMX() error {
	switch {
	case s.MR > amxRows || s.NR != qtype.PanelWidth:
		return fmt.Errorf("a tile of amx has up to %d rows and %d columns", amxRows, qtype.PanelWidth)
	case s.Prefetches() || s.Form != kernel.Load:
		return fmt.Errorf("amx has neither prefetch nor embedded broadcasts")
	}
	return nil
}
