package gemm

import (
	"unsafe"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// The registers of every tile function. The pool provides row and panel pointers.
const (
	rArgs  = asm.RDI
	rB     = asm.RSI
	rBS    = asm.RDX // bytes between panels
	rCount = asm.RCX
	rLDA   = asm.RAX // bytes between rows
	kLast  = asm.K1  // columns of the last panel
)

var pointerPool = [...]asm.Reg{asm.R8, asm.R9, asm.R10, asm.R11, asm.R12, asm.R13, asm.R14, asm.R15, asm.RBX}

// pointersEach is the number of rows or panels that share a pointer: p, p + stride and p +
// 2*stride are addressable.
const pointersEach = 3

// emitter generates one tile function. Its spec has the MR and NR of this tile.
type emitter struct {
	*asm.Asm
	s        spec
	v        int       // vectors across the tile
	used     int       // vector registers handed out
	acc      []asm.Vec // acc[r*v+j]: row r, vector j
	aBase    []asm.Reg
	bBase    []asm.Reg
	pointers int                       // handed out
	rows     func(r, disp int) asm.Mem // where rows of A are, unless they are where aBase and rLDA say; or nil
	begin    func()                    // begins the tile where C holds its chains; nil where accumulators do
	cMask    *asm.Vec                  // AVX2: for the columns of C, if no temporary of the body is free; or nil
	prefetcher
}

func newEmitter(a *asm.Asm, s spec) *emitter {
	e := &emitter{Asm: a, s: s, v: s.NR / s.ISA.Lanes(), bBase: []asm.Reg{rB}}
	for range (s.MR + pointersEach - 1) / pointersEach {
		e.aBase = append(e.aBase, e.pointer())
	}
	for range (s.NR/qtype.PanelWidth - 1) / pointersEach {
		e.bBase = append(e.bBase, e.pointer())
	}
	e.prefetcher = e.newPrefetcher()
	e.acc = e.vecs(s.MR * e.v)
	return e
}

// pointer allocates a general register. Beyond the last one it keeps counting; checkRegisters
// compares.
func (e *emitter) pointer() asm.Reg {
	r := pointerPool[min(e.pointers, len(pointerPool)-1)]
	e.pointers++
	return r
}

// vec allocates a vector register of the kernel's width. Beyond the last one it keeps counting;
// checkRegisters compares.
func (e *emitter) vec() asm.Vec {
	n := e.used
	e.used++
	return e.reg(n)
}

func (e *emitter) vecs(n int) []asm.Vec {
	out := make([]asm.Vec, n)
	for i := range out {
		out[i] = e.vec()
	}
	return out
}

func (e *emitter) reg(n int) asm.Vec {
	if e.s.ISA == kernel.AVX512 {
		return asm.Z(n)
	}
	return asm.Y(n)
}

func (e *emitter) wide() bool { return e.s.ISA == kernel.AVX512 }

// perPanel returns the number of vectors across one panel.
func (e *emitter) perPanel() int { return qtype.PanelWidth / e.s.ISA.Lanes() }

// a returns the operand at disp bytes into row r of A.
func (e *emitter) a(r, disp int) asm.Mem {
	if e.rows != nil {
		return e.rows(r, disp)
	}
	return strided(e.aBase, rLDA, r, disp)
}

// b returns the operand at disp bytes into the panel of vector j; part is the size of one vector's
// share of the operand.
func (e *emitter) b(j, disp, part int) asm.Mem {
	return strided(e.bBase, rBS, j/e.perPanel(), disp+j%e.perPanel()*part)
}

func strided(base []asm.Reg, stride asm.Reg, i, disp int) asm.Mem {
	p := base[i/pointersEach]
	if i%pointersEach == 0 {
		return asm.At(p, disp)
	}
	return asm.AtIndex(p, stride, i%pointersEach, disp)
}

func (e *emitter) arg(offset uintptr) asm.Mem { return asm.At(rArgs, int(offset)) }

// function wraps the body of a row tile in the loop over row tiles. setup runs once, before the
// loop.
func (e *emitter) function(setup, body func()) {
	var t kernel.TileArgs
	if e.wide() {
		e.Mov32(asm.RAX, e.arg(unsafe.Offsetof(t.Mask)))
		e.KMovW(kLast, asm.RAX)
	}
	setup()
	top := e.Here()
	if e.begin == nil {
		e.start()
	} else {
		e.begin()
	}
	e.loadPointers(e.aBase, rLDA, unsafe.Offsetof(t.A), unsafe.Offsetof(t.LDA))
	e.loadPointers(e.bBase, rBS, unsafe.Offsetof(t.B), unsafe.Offsetof(t.BStride))
	e.startPrefetch()
	body()
	e.stopPrefetch()
	if e.begin == nil {
		e.store()
	}
	p := e.aBase[0]
	for _, f := range [][2]uintptr{{unsafe.Offsetof(t.A), unsafe.Offsetof(t.AStep)}, {unsafe.Offsetof(t.C),
		unsafe.Offsetof(t.CStep)}} {
		e.Mov(p, e.arg(f[0]))
		e.Add(p, e.arg(f[1]))
		e.Mov(e.arg(f[0]), p)
	}
	e.Mov(p, e.arg(unsafe.Offsetof(t.Tiles)))
	e.Dec(p)
	e.Mov(e.arg(unsafe.Offsetof(t.Tiles)), p)
	e.Jcc(asm.NotZero, top)
	e.VZeroUpper()
	e.Ret()
}

// loadPointers sets the pointers, one for every pointersEach rows or panels.
func (e *emitter) loadPointers(base []asm.Reg, stride asm.Reg, first, step uintptr) {
	e.Mov(stride, e.arg(step))
	e.Mov(base[0], e.arg(first))
	for i := 1; i < len(base); i++ {
		e.Lea(base[i], asm.AtIndex(base[i-1], stride, 2, 0))
		e.Add(base[i], stride)
	}
}

func (e *emitter) advance(base []asm.Reg, bytes int) {
	for _, p := range base {
		e.Add(p, asm.Imm32(bytes))
	}
}

// advanceB advances the panel pointers and, unless spread, the prefetch pointers.
func (e *emitter) advanceB(bytes int) {
	e.advance(e.bBase, bytes)
	if !e.s.Spread {
		e.advance(e.pfBase, bytes)
	}
}

// loop repeats body as often as the argument says, which may be zero.
func (e *emitter) loop(count uintptr, body func()) {
	done := e.NewLabel()
	e.Mov(rCount, e.arg(count))
	e.Test(rCount, rCount)
	e.Jcc(asm.Zero, done)
	e.Align(32)
	top := e.Here()
	body()
	e.Dec(rCount)
	e.Jcc(asm.NotZero, top)
	e.Bind(done)
}

// start zeroes the accumulators or loads them from C.
func (e *emitter) start() {
	zero, ready := e.NewLabel(), e.NewLabel()
	var t kernel.TileArgs
	p := e.aBase[0]
	e.Mov(p, e.arg(unsafe.Offsetof(t.Load)))
	e.Test(p, p)
	e.Jcc(asm.Zero, zero)
	e.eachC(p, func(r, j int, m asm.Mem, masked *asm.Vec) { e.loadFrom(e.acc[r*e.v+j], j, m, masked) })
	e.Jmp(ready)
	e.Bind(zero)
	for _, acc := range e.acc {
		e.zero(acc)
	}
	e.Bind(ready)
}

func (e *emitter) zero(v asm.Vec) {
	if e.wide() {
		e.I(asm.VPXORD, v, v, v)
	} else {
		e.I(asm.VXORPS, v, v, v)
	}
}

// store writes the accumulators to C, the last panel up to its columns.
func (e *emitter) store() {
	e.eachC(e.aBase[0], e.storeTo)
}

// storeTo writes an accumulator to its place in C.
func (e *emitter) storeTo(r, j int, m asm.Mem, masked *asm.Vec) {
	e.storeVec(e.acc[r*e.v+j], j, m, masked)
}

// storeVec writes vector j of a row of C.
func (e *emitter) storeVec(v asm.Vec, j int, m asm.Mem, masked *asm.Vec) {
	switch {
	case masked != nil:
		e.I(asm.VMASKMOVPSS, m, *masked, v)
	case e.wide() && j == e.v-1:
		e.I(asm.VMOVUPS, m.K(kLast), v)
	default:
		e.I(asm.VMOVUPS, m, v)
	}
}

// loadFrom reads vector j of a row of C.
func (e *emitter) loadFrom(v asm.Vec, j int, m asm.Mem, masked *asm.Vec) {
	switch {
	case masked != nil:
		e.I(asm.VMASKMOVPSL, v, *masked, m)
	case e.wide() && j == e.v-1:
		e.I(asm.VMOVUPS, v.KZ(kLast), m)
	default:
		e.I(asm.VMOVUPS, v, m)
	}
}

// eachC visits the C operand of every accumulator. AVX2 has no opmasks: it branches on a full last
// panel and masks the two vectors of a partial one by a register, which visit receives. It
// overwrites p.
func (e *emitter) eachC(p asm.Reg, visit func(r, j int, m asm.Mem, masked *asm.Vec)) {
	if e.wide() {
		e.rowsOfC(p, 0, e.v, nil, visit)
		return
	}
	var t kernel.TileArgs
	partial, done := e.NewLabel(), e.NewLabel()
	e.Mov(p, e.arg(unsafe.Offsetof(t.Mask)))
	e.Cmp(p, asm.Imm32(1<<qtype.PanelWidth-1))
	e.Jcc(asm.NotZero, partial)
	e.rowsOfC(p, 0, e.v, nil, visit)
	e.Jmp(done)
	e.Bind(partial)
	e.rowsOfC(p, 0, e.v-2, nil, visit)
	mask := e.reg(len(e.acc)) // a temporary of the body, free here
	if e.cMask != nil {
		mask = *e.cMask
	}
	for h := range 2 {
		e.I(asm.VMOVUPS, mask, e.arg(unsafe.Offsetof(t.Lanes)+uintptr(32*h)))
		e.rowsOfC(p, e.v-2+h, e.v-1+h, &mask, visit)
	}
	e.Bind(done)
}

func (e *emitter) rowsOfC(p asm.Reg, j0, j1 int, mask *asm.Vec, visit func(r, j int, m asm.Mem,
	masked *asm.Vec)) {
	if j0 == j1 {
		return
	}
	var t kernel.TileArgs
	e.Mov(p, e.arg(unsafe.Offsetof(t.C)))
	for r := range e.s.MR {
		for j := j0; j < j1; j++ {
			visit(r, j, asm.At(p, j*e.acc[0].Bytes()), mask)
		}
		if r < e.s.MR-1 {
			e.Add(p, e.arg(unsafe.Offsetof(t.LDC)))
		}
	}
}
