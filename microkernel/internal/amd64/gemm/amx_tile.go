package gemm

import (
	"fmt"
	"unsafe"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/code"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// amxTile generates the tile of the chain "block" on AMX. For each span of k that shares scales it
// computes one product of tiles, whose integers are exact like those of the other dot products,
// then the same conversion and FMAs. The code takes panels one at a time and serves any number of
// them.
type amxTile struct {
	int8Tile
	spread bool
	step   asm.Reg   // 64, the distance of rows of all tiles
	rowAt  asm.Reg   // the packed rows of the sub-block
	bytes  asm.Reg   // the weights of the sub-block
	sums   asm.Reg   // its sums
	ahead  asm.Reg   // Spread: where the prefetch is
	zeros  asm.Vec   // while unpacking: the number that stands for 0, in every byte
	sumsOf []asm.Vec // integer sums of several rows side by side
	scales []asm.Vec // and their products of scales

	unpacking int // registers that only unpacking needs
}

// kBlock is the opmask of the words of a block of activations.
const kBlock = asm.K2

// amxSideBySide is the number of sums that are scaled side by side.
const amxSideBySide = 4

// amxForm returns the registers for converting the weights of a type to bytes.
func (s spec) amxForm() int8Form {
	f := int8Form{together: 1, temps: 1}
	if d := s.B.Desc(); d.Bits() < 8 {
		f.masks = len(d.Fields)
	}
	return f
}

// newAMX allocates the registers of a tile; emit generates it.
func newAMX(a *asm.Asm, s spec) (_ *emitter, emit func()) {
	spread := s.Spread
	s.Spread, s.NR = false, qtype.PanelWidth // prefetches its own way, and has one panel at a time
	e := &amxTile{int8Tile: int8Tile{subBlocks: newSubBlocks(newEmitter(a, s)), form: s.amxForm()}, spread: spread,
		step: rBS, sums: rCount}
	e.rowAt, e.bytes, e.ahead = e.aBase[0], e.pointer(), e.pointer()
	e.w, e.x, e.t = e.vecs(1), e.vecs(1), e.vecs(e.form.temps)
	e.sumsOf, e.scales = e.vecs(amxSideBySide), e.vecs(amxSideBySide)
	if e.SubBlocks() > 1 {
		for range len(e.BlockScales) {
			e.heads = append(e.heads, e.vecs(1))
		}
	}
	e.forUnpacking()
	return e.emitter, e.function
}

// forUnpacking allocates the registers that only unpacking needs, from the last register down: it
// runs before the accumulators are in use.
func (e *amxTile) forUnpacking() {
	vec := func() asm.Vec { e.unpacking++; return e.reg(e.s.ISA.Registers() - e.unpacking) }
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
		e.made = []asm.Vec{vec()}
	}
}

// Tile registers: at most four sums, then two tiles of activations and two of weights. CPUs finish
// a product and the store of its sums before they clear the same tile, so sub-blocks alternate
// between tiles.
const (
	amxTurns = 4
	amxA     = asm.Tile(4)
	amxB     = asm.Tile(6)
)

// turns returns the number of sub-blocks whose sums have tiles of their own.
func (e *amxTile) turns() int { return amxTurns / e.spans() }

// spans returns the number of spans in a sub-block.
func (e *amxTile) spans() int { return qtype.SubBlockK / e.Span() }

// tileNumber returns the tile of a span of a sub-block.
func (e *amxTile) tileNumber(turn, span int) int { return turn*e.spans() + span }

// function emits the loop over row tiles and over the panels of each.
func (e *amxTile) function() {
	var t amxArgs
	e.begin()
	e.rows = e.packed
	top := e.Here()
	e.packRows()
	e.Lea(e.bytes, asm.At(rArgs, amxWeights))
	e.Lea(e.sums, asm.At(rArgs, amxSums))
	e.copyArg(unsafe.Offsetof(t.rowTile), unsafe.Offsetof(t.C))
	e.copyArg(unsafe.Offsetof(t.ask), unsafe.Offsetof(t.NextB))
	e.aim()
	for i := range amxAhead {
		e.each(e.multiply(i%e.turns(), i))
		e.each(e.storeSums(i % e.turns()))
		e.Xor(e.sums, asm.Imm32(e.sumsOfSubBlock()))
	}
	e.eachPanel(e.panel)
	e.copyArg(unsafe.Offsetof(t.C), unsafe.Offsetof(t.rowTile))
	e.addArg(unsafe.Offsetof(t.C), e.arg(unsafe.Offsetof(t.CStep)))
	e.addArg(unsafe.Offsetof(t.A), e.arg(unsafe.Offsetof(t.AStep)))
	if e.spread {
		e.addArg(unsafe.Offsetof(t.NextB), e.arg(unsafe.Offsetof(t.sweep)))
	}
	e.addArg(unsafe.Offsetof(t.Tiles), asm.Imm32(-1))
	e.Jcc(asm.NotZero, top)
	e.TileRelease()
	e.VZeroUpper()
	e.Ret()
}

// copyArg copies an argument. It overwrites rowAt.
func (e *amxTile) copyArg(to, from uintptr) {
	e.Mov(e.rowAt, e.arg(from))
	e.Mov(e.arg(to), e.rowAt)
}

// addArg adds to an argument. It overwrites rowAt.
func (e *amxTile) addArg(to uintptr, what asm.Operand) {
	e.Mov(e.rowAt, e.arg(to))
	e.Add(e.rowAt, what)
	e.Mov(e.arg(to), e.rowAt)
}

// begin configures the tiles and converts the weights to bytes in memory.
func (e *amxTile) begin() {
	var t amxArgs
	var rows, bytes [8]uint8
	set := func(from asm.Tile, tiles, n, width int) {
		for i := range asm.Tile(tiles) {
			rows[from+i], bytes[from+i] = uint8(n), uint8(width)
		}
	}
	set(0, e.turns()*e.spans(), e.s.MR, 4*qtype.PanelWidth)
	set(amxA, 2, e.s.MR, e.Span())
	set(amxB, 2, e.Span()/4, 4*qtype.PanelWidth)
	e.SetTiles(rows, bytes)
	e.MovImm(rLDA, 1<<(kernel.ActQ8Bytes/4)-1)
	e.KMovW(kBlock, rLDA)
	ready := e.NewLabel()
	e.Mov(e.bytes, e.arg(unsafe.Offsetof(t.ready)))
	e.Test(e.bytes, e.bytes)
	e.Jcc(asm.NotZero, ready)
	e.setup()
	if e.ZeroPoint > 0 {
		e.I(asm.VPBROADCASTD, e.zeros, e.ConstU32(uint32(e.ZeroPoint)*0x01010101))
	}
	e.Lea(e.bytes, asm.At(rArgs, amxWeights))
	e.eachPanel(func() {
		e.eachSubBlock(1, e.Uncounted, func(int) { e.unpack() })
	})
	e.addArg(unsafe.Offsetof(t.ready), asm.Imm32(1))
	e.Bind(ready)
}

// eachPanel runs body for each panel, with rB at its start.
func (e *amxTile) eachPanel(body func()) {
	var t amxArgs
	e.copyArg(unsafe.Offsetof(t.left), unsafe.Offsetof(t.panels))
	e.copyArg(unsafe.Offsetof(t.panel), unsafe.Offsetof(t.B))
	e.Mov(e.arg(unsafe.Offsetof(t.stop)), e.bytes)
	top := e.Here()
	e.addArg(unsafe.Offsetof(t.stop), e.arg(unsafe.Offsetof(t.length)))
	e.Mov(rB, e.arg(unsafe.Offsetof(t.panel)))
	body()
	e.addArg(unsafe.Offsetof(t.panel), e.arg(unsafe.Offsetof(t.BStride)))
	e.addArg(unsafe.Offsetof(t.left), asm.Imm32(-1))
	e.Jcc(asm.NotZero, top)
}

// eachSubBlock runs body for each sub-block of a panel, which may have none, unrolled by `turns`,
// and advances in the weights and their bytes. count wraps the code of an iteration.
func (e *amxTile) eachSubBlock(turns int, count func(func()), body func(turn int)) {
	var t amxArgs
	done := e.NewLabel()
	next := func(turn, weights int) {
		body(turn)
		e.advanceB(weights)
		e.Add(e.bytes, asm.Imm32(amxPanelBytes))
	}
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

// block emits the sub-blocks of a block of several, unrolled by `turns`.
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

// unpack converts the weights of a sub-block to signed bytes in memory, [8][16 columns][4 k].
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

// packRows copies the blocks of a row tile to consecutive lines, one per row: rows of the tile
// then cross no line, and their scales are near, whatever the row stride.
func (e *amxTile) packRows() {
	var t amxArgs
	const inFlight = 8 // registers, of the accumulators, which hold nothing yet
	e.loadPointers(e.aBase, rLDA, unsafe.Offsetof(t.A), unsafe.Offsetof(t.LDA))
	e.Lea(e.bytes, asm.At(rArgs, amxRowData))
	packed := e.NewLabel()
	e.Cmp(e.bytes, e.arg(unsafe.Offsetof(t.rowsEnd)))
	e.Jcc(asm.AboveOrEqual, packed)
	top := e.Here()
	for r := range e.s.MR {
		v := e.reg(r % inFlight)
		e.I(asm.VMOVUPS, v.KZ(kBlock), strided(e.aBase, rLDA, r, 0))
		e.I(asm.VMOVUPS, asm.At(e.bytes, amxRow*r), v)
	}
	e.advance(e.aBase, kernel.ActQ8Bytes)
	e.Add(e.bytes, asm.Imm32(amxRowBytes))
	e.Cmp(e.bytes, e.arg(unsafe.Offsetof(t.rowsEnd)))
	e.Jcc(asm.Below, top)
	e.Bind(packed)
	e.Lea(e.rowAt, asm.At(rArgs, amxRowData))
	for i := range amxAhead { // in order: of a single sub-block too
		for r := range e.s.MR {
			at, v := i*amxRowBytes+amxRow*r, e.reg(r%inFlight)
			e.I(asm.VMOVUPS, v, asm.At(e.rowAt, at))
			e.I(asm.VMOVUPS, asm.At(e.bytes, at), v)
		}
	}
}

// packed returns the operand at disp in the activations of row r, for the current sub-block.
func (e *amxTile) packed(r, disp int) asm.Mem { return asm.At(e.rowAt, amxRow*r+disp) }

// amxCounts returns the instructions of an iteration of all panels of a spec, given those of one
// panel, including the packing that panels share.
func amxCounts(s kernel.Spec, panel code.Counts) (all code.Counts) {
	all.Add(float64(s.NR/qtype.PanelWidth), panel)
	blocks := float64(s.MR * s.Iteration() / kernel.ActQ8Block)
	all[code.Load] += blocks
	all[code.Store] += blocks
	return all
}

// aim sets the registers for walking over a panel.
func (e *amxTile) aim() {
	e.MovImm(e.step, 64)
	e.Lea(e.rowAt, asm.At(rArgs, amxRowData))
}

// panel emits all k of a piece of a row tile and a panel. The products of its last sub-blocks
// continue with the first ones of the next panel.
func (e *amxTile) panel() {
	var t amxArgs
	e.columns()
	e.start()
	if e.spread {
		e.Mov(e.ahead, e.arg(unsafe.Offsetof(t.ask)))
	}
	e.aim()
	if e.heads != nil {
		e.atHead = e.loadHeads
	}
	e.eachSubBlock(e.turns(), e.Counted, e.subBlock)
	e.store()
	e.addArg(unsafe.Offsetof(t.C), asm.Imm32(4*qtype.PanelWidth))
	if e.spread {
		e.addArg(unsafe.Offsetof(t.ask), e.arg(unsafe.Offsetof(t.BStride)))
	}
}

// columns sets the mask of the columns of C, which is full except in the last panel.
func (e *amxTile) columns() {
	var t amxArgs
	set := e.NewLabel()
	e.MovImm(rLDA, 1<<qtype.PanelWidth-1)
	e.Mov(e.rowAt, e.arg(unsafe.Offsetof(t.left)))
	e.Cmp(e.rowAt, asm.Imm32(1))
	e.Jcc(asm.NotZero, set)
	e.Mov32(rLDA, e.arg(unsafe.Offsetof(t.Mask)))
	e.Bind(set)
	e.KMovW(kLast, rLDA)
}

// validateAMX returns why the tile registers cannot hold the tile, or nil.
func (s spec) validateAMX() error {
	switch {
	case s.MR > AMXRows || s.NR > amxPanels*qtype.PanelWidth:
		return fmt.Errorf("a tile of amx has up to %d rows of %d columns", AMXRows, amxPanels*qtype.PanelWidth)
	case s.Prefetch > 0 || s.Form != kernel.Load:
		return fmt.Errorf("amx has neither a prefetch distance nor embedded broadcasts")
	}
	return nil
}
