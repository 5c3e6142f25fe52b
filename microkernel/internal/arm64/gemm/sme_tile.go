package gemm

import (
	"unsafe"

	"sandwich/microkernel/internal/arm64/asm"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// newSME allocates the tile of the chain "wide" for weights without scales as outer products in
// the ZA array: a column of A times a row of W for each k in order, fused, so that the bits are
// those of every other kernel. Rows of A are loaded into one tile and read back as columns. The
// other three tiles accumulate eight by eight elements, which streaming vectors of 256 bits hold,
// or sixteen by sixteen.
func newSME(a *asm.Asm, s spec) (_ *tile, emit func()) {
	e := &smeTile{Asm: a, s: s, lanes: s.smeLanes()}
	return &tile{used: 1 + e.vectors()}, func() {
		e.function(func() {}, func() {
			e.I(asm.ZEROZA)
			e.continued(func() { e.eachC(asm.LD1ZA) }, nil)
			e.products()
			e.eachC(asm.ST1ZA)
		})
	}
}

// smeTiles is the number of tiles that accumulate. The last tile transposes.
const smeTiles = 3

type smeTile struct {
	*asm.Asm
	s     spec
	lanes int
}

// Registers. x12 selects the slice of a tile.
const (
	smeCount = asm.X(1)
	smeN     = asm.X(2) // k of the chunk
	smeRow   = asm.X(3)
	smeStep  = asm.X(4)
	smeA     = asm.X(5)
	smeTmp   = asm.X(6)
	smeLeft  = asm.X(7)
	smeB     = asm.X(8) // and the registers after it: panels
	smeSlice = asm.X(12)

	smeRows = asm.P(0) // rows of the tile
	smeAll  = asm.P(1) // all columns of a vector
	smeLast = asm.P(2) // columns of the last vectors: this one and, of eight lanes, the next
	smeK    = asm.P(4) // k of the chunk
)

func (e *smeTile) get(x asm.X, offset uintptr) { e.I(asm.LDRX, x, nArgs, asm.Imm(offset)) }

// vectors returns the number of vectors across the tile, each a tile of ZA.
func (e *smeTile) vectors() int { return e.s.NR / e.lanes }

// function wraps the body of a row tile in the loop over row tiles, in streaming mode. setup runs
// once, before the loop.
func (e *smeTile) function(setup, body func()) {
	var t kernel.TileArgs
	e.I(asm.SMSTART)
	e.count(smeRows, e.s.MR)
	e.count(smeAll, e.lanes)
	e.get(smeTmp, unsafe.Offsetof(t.Columns))
	if e.lanes == 16 {
		e.I(asm.WHILELO, smeLast, asm.ZR, smeTmp)
	} else {
		e.MovImm(smeStep, 8)
		e.I(asm.WHILELO, smeLast, asm.ZR, smeTmp)
		e.I(asm.WHILELO, smeLast+1, smeStep, smeTmp)
		e.clip(smeTmp)
	}
	setup()
	top := e.Here()
	body()
	nextTile(e.Asm, smeTmp, smeStep, top)
	e.I(asm.SMSTOP)
	e.Ret()
}

// continued emits load if the chains continue from C, and otherwise the second function, which may
// be nil.
func (e *smeTile) continued(load, otherwise func()) {
	var t kernel.TileArgs
	zero, done := e.NewLabel(), e.NewLabel()
	e.get(smeTmp, unsafe.Offsetof(t.Load))
	e.CBZ(smeTmp, zero)
	load()
	if otherwise != nil {
		e.B(done)
	}
	e.Bind(zero)
	if otherwise != nil {
		otherwise()
		e.Bind(done)
	}
}

// count sets a predicate to the first n elements.
func (e *smeTile) count(p asm.P, n int) {
	e.MovImm(smeTmp, n)
	e.I(asm.WHILELO, p, asm.ZR, smeTmp)
}

// clip limits the first of two vectors to eight lanes, however long the vectors of the machine
// are.
func (e *smeTile) clip(columns asm.X) {
	few := e.NewLabel()
	e.Cmp(columns, 8)
	e.BC(asm.Below, few)
	e.I(asm.WHILELO, smeLast, asm.ZR, smeStep)
	e.Bind(few)
}

// mask returns the predicate of the columns of vector v in C.
func (e *smeTile) mask(v int) asm.P {
	first := (e.s.NR - qtype.PanelWidth) / e.lanes // vector of the last panel
	if v < first {
		return smeAll
	}
	return smeLast + asm.P(v-first)
}

// eachC loads or stores the accumulators, row by row.
func (e *smeTile) eachC(move *asm.Op) {
	var t kernel.TileArgs
	e.get(smeRow, unsafe.Offsetof(t.C))
	e.get(smeStep, unsafe.Offsetof(t.LDC))
	e.rows(func() {
		for v := range e.vectors() {
			e.AddImm(smeTmp, smeRow, 4*e.lanes*v)
			e.I(move, asm.Imm(v), e.mask(v), smeTmp)
		}
		e.I(asm.ADD, smeRow, smeRow, smeStep)
	})
}

// rows runs body for each row of the tile, with its slice in smeSlice.
func (e *smeTile) rows(body func()) {
	e.MovX(smeSlice, asm.ZR)
	e.MovImm(smeCount, e.s.MR)
	e.Loop(smeCount, func() {
		body()
		e.AddImm(smeSlice, smeSlice, 1)
	})
}

// products emits all k of a row tile, in chunks of the k that a slice holds.
func (e *smeTile) products() {
	var t kernel.TileArgs
	e.get(smeA, unsafe.Offsetof(t.A))
	e.get(smeB, unsafe.Offsetof(t.B))
	e.get(smeStep, unsafe.Offsetof(t.BStride))
	for p := 1; p < e.s.NR/qtype.PanelWidth; p++ {
		e.I(asm.ADD, smeB+asm.X(p), smeB+asm.X(p-1), smeStep)
	}
	done, whole, top := e.NewLabel(), e.NewLabel(), e.NewLabel()
	e.get(smeLeft, unsafe.Offsetof(t.Main))
	e.I(asm.LSLI, smeLeft, smeLeft, asm.Imm(4)) // KU is 16
	e.get(smeTmp, unsafe.Offsetof(t.Rest))
	if e.s.B == qtype.BF16 { // in pairs
		e.I(asm.ADDL, smeLeft, smeLeft, smeTmp, asm.Imm(1))
		e.get(smeTmp, unsafe.Offsetof(t.Odd))
	}
	e.I(asm.ADD, smeLeft, smeLeft, smeTmp)
	e.Bind(top)
	e.CBZ(smeLeft, done)
	e.MovImm(smeN, e.lanes)
	e.Cmp(smeLeft, e.lanes)
	e.BC(asm.AboveOrEqual, whole)
	e.MovX(smeN, smeLeft)
	e.Bind(whole)
	e.I(asm.SUB, smeLeft, smeLeft, smeN)
	e.chunk()
	e.B(top)
	e.Bind(done)
}

// chunk emits smeN consecutive k.
func (e *smeTile) chunk() {
	var t kernel.TileArgs
	e.I(asm.WHILELO, smeK, asm.ZR, smeN)
	e.MovX(smeRow, smeA)
	e.get(smeStep, unsafe.Offsetof(t.LDA))
	e.rows(func() {
		e.I(asm.LD1ZA, asm.Imm(smeTiles), smeK, smeRow)
		e.I(asm.ADD, smeRow, smeRow, smeStep)
	})
	e.AddImm(smeA, smeA, 4*e.lanes)
	e.MovX(smeSlice, asm.ZR)
	if e.s.B == qtype.BF16 {
		e.pairs()
		return
	}
	e.Loop(smeN, func() { e.step(0, e.s.B.PanelOffset(1)) })
}

// pairs emits a chunk of k that are stored in pairs; the last may be alone.
func (e *smeTile) pairs() {
	done := e.NewLabel()
	top := e.Here()
	e.step(0, 0)
	e.I(asm.SUBSI, smeN, smeN, asm.Imm(1))
	e.BC(asm.Equal, done)
	e.step(1, qtype.BF16.PanelOffset(2))
	e.I(asm.SUBSI, smeN, smeN, asm.Imm(1))
	e.BC(asm.NotEqual, top)
	e.Bind(done)
}

// step emits the outer products of one k and advances the panels by the given bytes.
func (e *smeTile) step(half, bytes int) {
	column, row := asm.V(0), asm.V(1)
	e.I(asm.COLUMN, column, smeRows, asm.Imm(smeTiles), asm.Imm(0))
	for v := range e.vectors() {
		w := row + asm.V(v)
		e.weights(w, v, half)
		e.I(asm.FMOPA, asm.Imm(v), smeRows, smeAll, column, w)
	}
	for p := range e.s.NR / qtype.PanelWidth {
		x := smeB + asm.X(p)
		if e.s.Prefetch > 0 && bytes > 0 {
			e.I(asm.PRFM1, x, asm.Imm(e.s.Prefetch))
		}
		e.AddImm(x, x, bytes)
	}
	e.AddImm(smeSlice, smeSlice, 1)
}

// weights loads vector v of one k into w as float32; half selects the element of a pair of bf16.
func (e *smeTile) weights(w asm.V, v, half int) {
	p, first := smeB+asm.X(v*e.lanes/qtype.PanelWidth), v*e.lanes%qtype.PanelWidth
	switch e.s.B {
	case qtype.F32:
		e.AddImm(smeTmp, p, 4*first)
		e.I(asm.LD1W, w, smeAll, smeTmp)
	case qtype.F16:
		e.AddImm(smeTmp, p, 2*first)
		e.I(asm.LD1H, w, smeAll, smeTmp)
		e.I(asm.ZFCVT, w, smeAll, w)
	case qtype.BF16:
		e.AddImm(smeTmp, p, 4*first)
		e.I(asm.LD1W, w, smeAll, smeTmp)
		if half == 0 {
			e.I(asm.ZLSLS, w, w, asm.Imm(16))
			return
		}
		e.I(asm.ZLSRS, w, w, asm.Imm(16))
		e.I(asm.ZLSLS, w, w, asm.Imm(16))
	}
}
