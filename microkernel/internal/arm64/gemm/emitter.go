package gemm

import (
	"unsafe"

	"sandwich/microkernel/internal/arm64/asm"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// pointers are the general registers for row and panel pointers. x0 holds the arguments, x1 to x3
// are temporaries, x18 and x28 to x30 belong to the system and to Go.
var pointers = [...]asm.X{4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27}

const (
	nArgs  = asm.X(0)
	nCount = asm.X(1)
	nTmp   = asm.X(2)
	nTmp2  = asm.X(3)
)

// tile generates one tile function. Its spec has the MR and NR of this tile. It keeps a pointer to
// each row of A and to each panel; vector j of the tile is four columns.
type tile struct {
	*asm.Asm
	s     spec
	v     int // vectors across the tile
	used  int // vector registers handed out
	acc   []asm.V
	aBase []asm.X
	bBase []asm.X
	free  []asm.X
}

func newTile(a *asm.Asm, s spec) *tile {
	e := &tile{Asm: a, s: s, v: s.NR / Lanes, free: pointers[:]}
	for range s.MR {
		e.aBase = append(e.aBase, e.pointer())
	}
	for range s.NR / qtype.PanelWidth {
		e.bBase = append(e.bBase, e.pointer())
	}
	e.acc = e.vecs(s.MR * e.v)
	return e
}

// pointer allocates a general register. A tile with more rows and panels than pointers also has
// too many accumulators, so Legal rejects it.
func (e *tile) pointer() asm.X {
	if len(e.free) == 0 {
		return 0
	}
	x := e.free[0]
	e.free = e.free[1:]
	return x
}

// vec allocates a vector register. Beyond the last one it keeps counting; Legal compares.
func (e *tile) vec() asm.V {
	e.used++
	return asm.V(e.used - 1)
}

func (e *tile) vecs(n int) []asm.V {
	out := make([]asm.V, n)
	for i := range out {
		out[i] = e.vec()
	}
	return out
}

// left returns the number of vector registers that are not allocated.
func (e *tile) left() int { return Registers - e.used }

const perPanel = qtype.PanelWidth / 4 // vectors across one panel

// panelOf returns the pointer to the panel of vector j.
func (e *tile) panelOf(j int) asm.X            { return e.bBase[j/perPanel] }
func (e *tile) getArg(x asm.X, offset uintptr) { e.I(asm.LDRX, x, nArgs, asm.Imm(offset)) }

// function wraps the body of a row tile in the loop over row tiles. setup runs once, before the
// loop.
func (e *tile) function(setup, body func()) {
	var t kernel.TileArgs
	setup()
	e.Align(16)
	top := e.Here()
	e.start()
	e.loadPointers(e.aBase, unsafe.Offsetof(t.A), unsafe.Offsetof(t.LDA))
	e.loadPointers(e.bBase, unsafe.Offsetof(t.B), unsafe.Offsetof(t.BStride))
	body()
	e.store()
	nextTile(e.Asm, nTmp, nTmp2, top)
	e.Ret()
}

// nextTile advances the arguments by a row tile and branches to top unless that was the last. It
// overwrites x and y.
func nextTile(a *asm.Asm, x, y asm.X, top asm.Label) {
	var t kernel.TileArgs
	for _, f := range [][2]uintptr{{unsafe.Offsetof(t.A), unsafe.Offsetof(t.AStep)}, {unsafe.Offsetof(t.C),
		unsafe.Offsetof(t.CStep)}} {
		a.I(asm.LDRX, x, nArgs, asm.Imm(f[0]))
		a.I(asm.LDRX, y, nArgs, asm.Imm(f[1]))
		a.I(asm.ADD, x, x, y)
		a.I(asm.STRX, x, nArgs, asm.Imm(f[0]))
	}
	tiles := asm.Imm(unsafe.Offsetof(t.Tiles))
	a.I(asm.LDRX, x, nArgs, tiles)
	a.I(asm.SUBSI, x, x, asm.Imm(1))
	a.I(asm.STRX, x, nArgs, tiles)
	a.BC(asm.NotEqual, top)
}

func (e *tile) loadPointers(base []asm.X, first, step uintptr) {
	e.getArg(base[0], first)
	if len(base) > 1 {
		e.getArg(nTmp, step)
	}
	for i := 1; i < len(base); i++ {
		e.I(asm.ADD, base[i], base[i-1], nTmp)
	}
}

func (e *tile) advance(base []asm.X, bytes int) {
	for _, p := range base {
		e.AddImm(p, p, bytes)
	}
}

// loop repeats body as often as the argument says, which may be zero.
func (e *tile) loop(count uintptr, body func()) {
	done := e.NewLabel()
	e.getArg(nCount, count)
	e.CBZ(nCount, done)
	e.Loop(nCount, func() {
		var t kernel.TileArgs
		if count == unsafe.Offsetof(t.Main) {
			e.Counted(body)
		} else {
			body()
		}
	})
	e.Bind(done)
}

// start zeroes the accumulators or loads them from C.
func (e *tile) start() {
	zero, ready := e.NewLabel(), e.NewLabel()
	var t kernel.TileArgs
	e.getArg(nTmp, unsafe.Offsetof(t.Load))
	e.CBZ(nTmp, zero)
	e.eachC(asm.LDRQ, false)
	e.B(ready)
	e.Bind(zero)
	for _, acc := range e.acc {
		e.Zero(acc)
	}
	e.Bind(ready)
}

// store writes the accumulators to C, the last panel up to its columns.
func (e *tile) store() { e.eachC(asm.STRQ, true) }

// eachC loads or stores every accumulator. The columns of a partial last panel are copied word by
// word through scratch memory in the arguments.
func (e *tile) eachC(move *asm.Op, storing bool) {
	var t kernel.TileArgs
	c, ldc, scratch, columns := e.aBase[0], nTmp2, e.bBase[0], nTmp
	partial, done := e.NewLabel(), e.NewLabel()
	e.getArg(c, unsafe.Offsetof(t.C))
	e.getArg(ldc, unsafe.Offsetof(t.LDC))
	e.getArg(columns, unsafe.Offsetof(t.Columns))
	row := func(r, n int) {
		for j, acc := range e.acc[r*e.v:][:n] {
			e.I(move, acc, c, asm.Imm(16*j))
		}
	}
	e.Cmp(columns, qtype.PanelWidth)
	e.BC(asm.NotEqual, partial)
	for r := range e.s.MR {
		row(r, e.v)
		e.I(asm.ADD, c, c, ldc)
	}
	e.B(done)
	e.Bind(partial)
	whole := e.v - perPanel
	last := func(r int) {
		e.AddImm(scratch, nArgs, int(unsafe.Offsetof(t.Lanes)))
		for j, acc := range e.acc[r*e.v+whole:][:perPanel] {
			e.I(move, acc, scratch, asm.Imm(16*j))
		}
	}
	for r := range e.s.MR {
		row(r, whole)
		if storing {
			last(r)
		}
		e.copyColumns(c, 16*whole, columns, storing)
		if !storing {
			last(r)
		}
		e.I(asm.ADD, c, c, ldc)
	}
	e.Bind(done)
}

// copyColumns copies as many words as there are columns between C at the given bytes and scratch.
func (e *tile) copyColumns(c asm.X, at int, columns asm.X, storing bool) {
	var t kernel.TileArgs
	from, to, n := e.free[0], e.free[1], nCount
	e.AddImm(from, c, at)
	e.AddImm(to, nArgs, int(unsafe.Offsetof(t.Lanes)))
	if storing {
		from, to = to, from
	}
	e.MovX(n, columns)
	word := e.free[2]
	e.Loop(n, func() {
		e.I(asm.LDRWP, word, from, asm.Imm(4))
		e.I(asm.STRWP, word, to, asm.Imm(4))
	})
}

// prefetch requests the panel bytes [from, to) of the current sub-block at the prefetch distance.
func (e *tile) prefetch(from, to int) {
	if e.s.Prefetch == 0 {
		return
	}
	for at := (from + 63) &^ 63; at < to; at += 64 {
		for _, p := range e.bBase {
			e.I(asm.PRFM1, p, asm.Imm(at+e.s.Prefetch))
		}
	}
}
