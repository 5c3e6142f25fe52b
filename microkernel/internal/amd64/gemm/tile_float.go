package gemm

import (
	"unsafe"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// newFloat allocates the tile of the chain "wide" for weights without scales: for each k, a vector
// of W is widened and multiplied by each row's element of A.
func newFloat(a *asm.Asm, s spec) (_ *emitter, emit func()) {
	e := &floatTile{emitter: newEmitter(a, s)}
	if !s.bFromMemory() {
		e.w = e.vecs(e.v)
	}
	if s.B == qtype.BF16 {
		e.high = e.vec()
	}
	if s.Form == kernel.Load {
		e.x = e.vec()
	}
	return e.emitter, func() { e.function(e.setup, e.body) }
}

type floatTile struct {
	*emitter
	w    []asm.Vec // one k of W
	x    asm.Vec   // one element of A in all lanes
	high asm.Vec   // mask of the upper halves of 32-bit words
}

func (e *floatTile) setup() {
	if e.s.B == qtype.BF16 {
		e.I(asm.VBROADCASTSS, e.high, e.ConstU32(0xFFFF0000))
	}
}

func (e *floatTile) body() {
	var t kernel.TileArgs
	e.mainLoop(func() { e.steps(e.s.KU) })
	if e.s.B == qtype.BF16 {
		e.loop(unsafe.Offsetof(t.Rest), func() { e.steps(2) })
		e.loop(unsafe.Offsetof(t.Odd), func() { e.step(0) })
		return
	}
	e.loop(unsafe.Offsetof(t.Rest), func() { e.steps(1) })
}

// steps emits n consecutive k and advances the pointers.
func (e *floatTile) steps(n int) {
	bytes := e.s.B.PanelOffset(n)
	for k := range n {
		if n == e.s.KU && (bytes >= 64*n || k%2 == 0) {
			e.prefetch(e.s.B.PanelOffset(k), e.s.B.PanelOffset(k)+1)
		}
		e.step(k)
	}
	e.advance(e.aBase, 4*n)
	e.advanceB(bytes)
}

// step emits one k: it loads W, then one FMA per accumulator.
func (e *floatTile) step(k int) {
	for j, w := range e.w {
		e.widen(w, j, k)
	}
	e.multiply(asm.VFMADD231PS, e.w, e.x, 4*k, func(j int) asm.Mem { return e.b(j, 64*k, 32) })
}

// multiply adds one k, or pair of k, to all accumulators: vectors w of W, or operands in memory if
// w is nil, times the element of each row at disp, which passes through x in form Load.
func (e *emitter) multiply(op *asm.Op, w []asm.Vec, x asm.Vec, disp int, memory func(j int) asm.Mem) {
	for r := range e.s.MR {
		a := e.a(r, disp)
		if e.s.Form == kernel.Load {
			e.I(asm.VBROADCASTSS, x, a)
		}
		for j := range e.v {
			acc := e.acc[r*e.v+j]
			switch {
			case e.s.Form == kernel.Embed:
				e.I(op, acc, w[j], a.Bcast())
			case w == nil:
				e.I(op, acc, x, memory(j))
			default:
				e.I(op, acc, x, w[j])
			}
		}
	}
}

// widen loads vector j of step k into w as float32.
func (e *floatTile) widen(w asm.Vec, j, k int) {
	n := w.Bytes()
	switch e.s.B {
	case qtype.F32:
		e.I(asm.VMOVUPS, w, e.b(j, 64*k, n))
	case qtype.F16:
		e.I(asm.VCVTPH2PS, w, e.b(j, 32*k, n/2))
	case qtype.BF16:
		pair := e.b(j, 64*(k/2), n)
		switch {
		case k%2 == 1 && e.wide():
			e.I(asm.VPANDD, w, e.high, pair)
		case k%2 == 1:
			e.I(asm.VPAND, w, e.high, pair)
		case e.wide():
			e.I(asm.VPSLLD, w, pair, asm.Imm(16))
		default:
			e.I(asm.VMOVUPS, w, pair)
			e.I(asm.VPSLLD, w, w, asm.Imm(16))
		}
	}
}

// newBF16 allocates the tile of the chain "pair" on AVX512_BF16: one VDPBF16PS per accumulator for
// each pair of k. Packed panels are its operand.
func newBF16(a *asm.Asm, s spec) (_ *emitter, emit func()) {
	e := &pairTile{emitter: newEmitter(a, s)}
	if !s.pairFromMemory() {
		e.w = e.vecs(e.v)
	}
	if s.Form == kernel.Load {
		e.x = e.vec()
	}
	return e.emitter, func() { e.function(func() {}, e.body) }
}

type pairTile struct {
	*emitter
	w []asm.Vec // one pair of k of W; nil: a memory operand
	x asm.Vec   // one pair of A in all lanes
}

func (e *pairTile) body() {
	var t kernel.TileArgs
	e.mainLoop(func() { e.steps(e.s.KU / 2) })
	e.loop(unsafe.Offsetof(t.Rest), func() { e.steps(1) })
}

// steps emits n consecutive pairs of k and advances the pointers.
func (e *pairTile) steps(n int) {
	for i := range n {
		if n == e.s.KU/2 {
			e.prefetch(64*i, 64*i+1)
		}
		e.step(i)
	}
	e.advance(e.aBase, 4*n)
	e.advanceB(64 * n)
}

// step emits pair i.
func (e *pairTile) step(i int) {
	for j, w := range e.w {
		e.I(asm.VMOVUPS, w, e.b(j, 64*i, 64))
	}
	e.multiply(asm.VDPBF16PS, e.w, e.x, 4*i, func(j int) asm.Mem { return e.b(j, 64*i, 64) })
}
