package gemm

import (
	"unsafe"

	"sandwich/microkernel/internal/arm64/asm"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// emitWiden generates the widener of a weight type.
func emitWiden(a *asm.Asm, b qtype.Type) {
	var t kernel.WidenArgs
	e := &tile{Asm: a, s: spec{kernel.Spec{ISA: kernel.NEON, B: b, MR: 1, NR: qtype.PanelWidth}}, v: perPanel,
		free: pointers[:]}
	dst := e.pointer()
	e.bBase = []asm.X{e.pointer()}
	e.getArg(e.bBase[0], unsafe.Offsetof(t.Src))
	e.getArg(dst, unsafe.Offsetof(t.Dst))
	put := func(j, k int, w asm.V) { e.I(asm.STRQ, w, dst, asm.Imm(64*k+16*j)) }
	if b.Quantized() {
		u := newUnpacker(e)
		u.setup()
		u.blocks(unsafe.Offsetof(t.Main), func() {
			for j := range e.v {
				u.each(j, func(k int, w asm.V) { put(j, k, w) })
			}
			e.AddImm(dst, dst, 64*qtype.SubBlockK)
		})
	} else {
		f := &floatTile{tile: e}
		f.high = e.vec()
		w := e.vecs(8)
		f.setup()
		iteration := func(n int) {
			for i := range n * e.v {
				x := w[i%len(w)]
				f.widen(x, i%e.v, i/e.v)
				put(i%e.v, i/e.v, x)
			}
			e.advance(e.bBase, b.PanelOffset(n))
			e.AddImm(dst, dst, 64*n)
		}
		e.loop(unsafe.Offsetof(t.Main), func() { iteration(kernel.WidenStep(b)) })
		e.widenRest(iteration)
	}
	e.Ret()
}

// widenRest emits the k after the last whole iteration: one at a time, or for pairs of bf16 two at
// a time and a last one alone.
func (e *tile) widenRest(iteration func(n int)) {
	var t kernel.WidenArgs
	if e.s.B != qtype.BF16 {
		e.loop(unsafe.Offsetof(t.Rest), func() { iteration(1) })
		return
	}
	last, done := e.NewLabel(), e.NewLabel()
	e.getArg(nCount, unsafe.Offsetof(t.Rest))
	top := e.Here()
	e.Cmp(nCount, 2)
	e.BC(asm.Below, last)
	iteration(2)
	e.AddImm(nCount, nCount, -2)
	e.B(top)
	e.Bind(last)
	e.CBZ(nCount, done)
	iteration(1)
	e.Bind(done)
}
