package microkernel

import (
	"unsafe"

	"sandwich/microkernel/internal/a64"
)

// emitNEONWiden is emitWiden for arm64.
func emitNEONWiden(a *a64.Asm, b WeightType) {
	var t widenArgs
	e := &neonTile{Asm: a, s: Spec{ISA: NEON, B: b, MR: 1, NR: PanelWidth}, v: neonPerPanel, free: neonPointers[:]}
	dst := e.pointer()
	e.bBase = []a64.X{e.pointer()}
	e.getArg(e.bBase[0], unsafe.Offsetof(t.src))
	e.getArg(dst, unsafe.Offsetof(t.dst))
	put := func(j, k int, w a64.V) { e.I(a64.STRQ, w, dst, a64.Imm(64*k+16*j)) }
	if b.Quantized() {
		u := newNEONUnpacker(e)
		u.setup()
		u.blocks(unsafe.Offsetof(t.main), func() {
			for j := range e.v {
				u.each(j, func(k int, w a64.V) { put(j, k, w) })
			}
			e.AddImm(dst, dst, 64*turnK)
		})
	} else {
		f := &neonFloat{neonTile: e}
		f.high = e.vec()
		w := e.vecs(8)
		f.setup()
		turn := func(n int) {
			for i := range n * e.v {
				x := w[i%len(w)]
				f.widen(x, i%e.v, i/e.v)
				put(i%e.v, i/e.v, x)
			}
			e.advance(e.bBase, PanelOffset(b, n))
			e.AddImm(dst, dst, 64*n)
		}
		e.loop(unsafe.Offsetof(t.main), func() { turn(widenStep(b)) })
		e.widenRest(turn)
	}
	e.Ret()
}

// widenRest is the k after the last whole turn: singly, or for pairs of bf16 two at a time and the last alone.
func (e *neonTile) widenRest(turn func(n int)) {
	var t widenArgs
	if e.s.B != BF16 {
		e.loop(unsafe.Offsetof(t.rest), func() { turn(1) })
		return
	}
	last, done := e.NewLabel(), e.NewLabel()
	e.getArg(nCount, unsafe.Offsetof(t.rest))
	top := e.Here()
	e.Cmp(nCount, 2)
	e.BC(a64.Below, last)
	turn(2)
	e.AddImm(nCount, nCount, -2)
	e.B(top)
	e.Bind(last)
	e.CBZ(nCount, done)
	turn(1)
	e.Bind(done)
}
