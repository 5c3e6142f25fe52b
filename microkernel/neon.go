package microkernel

import (
	"fmt"
	"unsafe"

	"sandwich/microkernel/internal/a64"
)

// neonPointers are the general registers that serve row and panel pointers; x0 holds the arguments, x1 to x3 are at the disposal
// of the code, x18 and x28 to x30 belong to the system and to Go.
var neonPointers = [...]a64.X{4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27}

const (
	nArgs  = a64.X(0)
	nCount = a64.X(1)
	nTmp   = a64.X(2)
	nTmp2  = a64.X(3)
)

// neonTile generates one tile function for arm64. Its spec has the MR and NR of this very tile. It keeps a pointer to each row of
// A and to each panel; vector j of the tile is four columns.
type neonTile struct {
	*a64.Asm
	s     Spec
	v     int // vectors across the tile
	used  int // vector registers handed out
	acc   []a64.V
	aBase []a64.X
	bBase []a64.X
	free  []a64.X
}

func newNEONTile(a *a64.Asm, s Spec) *neonTile {
	e := &neonTile{Asm: a, s: s, v: s.NR / NEON.Lanes(), free: neonPointers[:]}
	for range s.MR {
		e.aBase = append(e.aBase, e.pointer())
	}
	for range s.NR / PanelWidth {
		e.bBase = append(e.bBase, e.pointer())
	}
	e.acc = e.vecs(s.MR * e.v)
	return e
}

func (e *neonTile) pointer() a64.X {
	x := e.free[0]
	e.free = e.free[1:]
	return x
}

// vec hands out a vector register; checkRegisters has made sure that there are enough.
func (e *neonTile) vec() a64.V {
	e.used++
	return a64.V(e.used - 1)
}

func (e *neonTile) vecs(n int) []a64.V {
	out := make([]a64.V, n)
	for i := range out {
		out[i] = e.vec()
	}
	return out
}

// left is the vector registers that nothing has claimed yet.
func (e *neonTile) left() int { return NEON.vectors() - e.used }

const neonPerPanel = PanelWidth / 4 // vectors across one panel

// panelOf is the pointer to the panel of vector j.
func (e *neonTile) panelOf(j int) a64.X { return e.bBase[j/neonPerPanel] }

func (e *neonTile) getArg(x a64.X, offset uintptr) { e.I(a64.LDRX, x, nArgs, a64.Imm(offset)) }

// function wraps the body of one row tile in the loop over row tiles. setup runs once, before the loop.
func (e *neonTile) function(setup, body func()) {
	var t tileArgs
	setup()
	e.Align(16)
	top := e.Here()
	e.start()
	e.loadPointers(e.aBase, unsafe.Offsetof(t.a), unsafe.Offsetof(t.lda))
	e.loadPointers(e.bBase, unsafe.Offsetof(t.b), unsafe.Offsetof(t.bStride))
	body()
	e.store()
	nextNEONTile(e.Asm, nTmp, nTmp2, top)
	e.Ret()
}

// nextNEONTile moves the arguments on by a row tile and goes to top unless that was the last. It clobbers x and y.
func nextNEONTile(a *a64.Asm, x, y a64.X, top a64.Label) {
	var t tileArgs
	for _, f := range [][2]uintptr{{unsafe.Offsetof(t.a), unsafe.Offsetof(t.aStep)}, {unsafe.Offsetof(t.c), unsafe.Offsetof(t.cStep)}} {
		a.I(a64.LDRX, x, nArgs, a64.Imm(f[0]))
		a.I(a64.LDRX, y, nArgs, a64.Imm(f[1]))
		a.I(a64.ADD, x, x, y)
		a.I(a64.STRX, x, nArgs, a64.Imm(f[0]))
	}
	tiles := a64.Imm(unsafe.Offsetof(t.tiles))
	a.I(a64.LDRX, x, nArgs, tiles)
	a.I(a64.SUBSI, x, x, a64.Imm(1))
	a.I(a64.STRX, x, nArgs, tiles)
	a.BC(a64.NotEqual, top)
}

func (e *neonTile) loadPointers(base []a64.X, first, step uintptr) {
	e.getArg(base[0], first)
	if len(base) > 1 {
		e.getArg(nTmp, step)
	}
	for i := 1; i < len(base); i++ {
		e.I(a64.ADD, base[i], base[i-1], nTmp)
	}
}

func (e *neonTile) advance(base []a64.X, bytes int) {
	for _, p := range base {
		e.AddImm(p, p, bytes)
	}
}

// loop runs body as often as the argument says, not at all for zero.
func (e *neonTile) loop(count uintptr, body func()) {
	done := e.NewLabel()
	e.getArg(nCount, count)
	e.CBZ(nCount, done)
	e.Loop(nCount, body)
	e.Bind(done)
}

// start zeroes the accumulators or loads them from C.
func (e *neonTile) start() {
	zero, ready := e.NewLabel(), e.NewLabel()
	var t tileArgs
	e.getArg(nTmp, unsafe.Offsetof(t.load))
	e.CBZ(nTmp, zero)
	e.eachC(a64.LDRQ, false)
	e.B(ready)
	e.Bind(zero)
	for _, acc := range e.acc {
		e.Zero(acc)
	}
	e.Bind(ready)
}

// store writes the accumulators to C, the last panel up to its columns.
func (e *neonTile) store() { e.eachC(a64.STRQ, true) }

// eachC loads or stores every accumulator. The columns of a partial last panel go through scratch in the arguments, word by word.
func (e *neonTile) eachC(move *a64.Op, storing bool) {
	var t tileArgs
	c, ldc, scratch, columns := e.aBase[0], nTmp2, e.bBase[0], nTmp
	partial, done := e.NewLabel(), e.NewLabel()
	e.getArg(c, unsafe.Offsetof(t.c))
	e.getArg(ldc, unsafe.Offsetof(t.ldc))
	e.getArg(columns, unsafe.Offsetof(t.columns))
	row := func(r, n int) {
		for j, acc := range e.acc[r*e.v:][:n] {
			e.I(move, acc, c, a64.Imm(16*j))
		}
	}
	e.Cmp(columns, PanelWidth)
	e.BC(a64.NotEqual, partial)
	for r := range e.s.MR {
		row(r, e.v)
		e.I(a64.ADD, c, c, ldc)
	}
	e.B(done)
	e.Bind(partial)
	whole := e.v - neonPerPanel
	last := func(r int) {
		e.AddImm(scratch, nArgs, int(unsafe.Offsetof(t.lanes)))
		for j, acc := range e.acc[r*e.v+whole:][:neonPerPanel] {
			e.I(move, acc, scratch, a64.Imm(16*j))
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
		e.I(a64.ADD, c, c, ldc)
	}
	e.Bind(done)
}

// copyColumns copies as many words as there are columns between C at the given bytes and scratch.
func (e *neonTile) copyColumns(c a64.X, at int, columns a64.X, storing bool) {
	var t tileArgs
	from, to, n := e.free[0], e.free[1], nCount
	e.AddImm(from, c, at)
	e.AddImm(to, nArgs, int(unsafe.Offsetof(t.lanes)))
	if storing {
		from, to = to, from
	}
	e.MovX(n, columns)
	word := e.free[2]
	e.Loop(n, func() {
		e.I(a64.LDRWP, word, from, a64.Imm(4))
		e.I(a64.STRWP, word, to, a64.Imm(4))
	})
}

// prefetch asks for the panel bytes [from, to) of the present turn, ahead by the distance of the spec.
func (e *neonTile) prefetch(from, to int) {
	if e.s.Prefetch == 0 {
		return
	}
	for at := (from + 63) &^ 63; at < to; at += 64 {
		for _, p := range e.bBase {
			e.I(a64.PRFM1, p, a64.Imm(at+e.s.Prefetch))
		}
	}
}

// assembleNEON is assemble for arm64.
func assembleNEON(level a64.Level, emit func(a *a64.Asm)) ([]byte, error) {
	a := a64.New(level)
	emit(a)
	return a.Finish()
}

// assembleNEON generates the machine code of one tile of a NEON spec.
func (s Spec) assembleNEON() ([]byte, error) {
	emit := emitNEONFloat
	level := a64.Base
	switch {
	case s.Form == Outer && s.Compute == ComputeInt8:
		emit, level = emitSMEInt8, a64.SME
	case s.Form == Outer:
		emit, level = emitSME, a64.SME
	case s.Compute == ComputeInt8:
		emit = emitNEONInt8
	case s.Compute == ComputeBF16:
		emit = emitNEONBF16
	case s.B.Quantized():
		emit = emitNEONQuant
	}
	switch s.Dot {
	case MMLA:
		level = a64.DotProd | a64.I8MM
	case SDot:
		level = a64.DotProd
	case BFMMLA, BFDot:
		level = a64.BF16
	}
	return assembleNEON(level, func(a *a64.Asm) { emit(a, s) })
}

// validateNEON is what holds for the kernels of arm64 beyond the rules for all.
func (s Spec) validateNEON() error {
	switch {
	case s.Form == Outer:
		return s.validateSME()
	case s.B.Quantized() && s.Form != Lane:
		return fmt.Errorf("kernels for quantized weights multiply by lanes on %s", s.ISA)
	case s.Form == Lane && s.KU%4 != 0:
		return fmt.Errorf("KU of a kernel that multiplies by lanes is a multiple of 4")
	}
	return nil
}

// neonRegisters is the number of vector registers the tile takes at least.
func (s Spec) neonRegisters(tile int) int {
	switch {
	case s.Form == Outer && s.Compute == ComputeInt8:
		return s.smeInt8Registers()
	case s.Form == Outer:
		return 1 + s.NR/s.smeLanes()
	case s.Compute == ComputeInt8:
		return tile + s.neonInt8Registers()
	case s.Compute == ComputeBF16:
		return tile + s.neonPairRegisters()
	case s.B.Quantized():
		return tile + s.MR + s.neonUnpackRegisters()
	}
	return tile + s.MR + s.neonFloatFixed() + 2
}
