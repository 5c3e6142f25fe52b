package gemm

import (
	"unsafe"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// emitWiden generates the widener of a weight type.
func emitWiden(a *asm.Asm, isa kernel.ISA, b qtype.Type) {
	const rDst = asm.R8
	var t kernel.WidenArgs
	e := &emitter{Asm: a, s: spec{kernel.Spec{ISA: isa, B: b, MR: 1, NR: qtype.PanelWidth}},
		v: qtype.PanelWidth / isa.Lanes(), bBase: []asm.Reg{rB}, pointers: 1}
	e.Mov(rB, e.arg(unsafe.Offsetof(t.Src)))
	e.Mov(rDst, e.arg(unsafe.Offsetof(t.Dst)))
	put := func(j, k int, w asm.Vec) { e.I(asm.VMOVUPS, asm.At(rDst, 64*k+j*w.Bytes()), w) }
	step := kernel.WidenStep(b)
	next := func(k int) {
		e.advance(e.bBase, b.PanelOffset(k))
		e.Add(rDst, asm.Imm32(64*k))
	}
	if b.Quantized() {
		u := newUnpacker(e, e.v)
		u.setup()
		u.blocks(func(block func()) { e.loop(unsafe.Offsetof(t.Main), block) }, func() {
			for k := range qtype.SubBlockK {
				for j := range e.v {
					if k%u.Span() == 0 {
						u.scales(j, j, k)
					}
					u.value(j, j, k)
					put(j, k, u.w[j])
				}
			}
			e.Add(rDst, asm.Imm32(64*qtype.SubBlockK))
		})
	} else {
		f := &floatTile{emitter: e}
		if b == qtype.BF16 {
			f.high = e.vec()
		}
		w := e.vecs(8)
		f.setup()
		iteration := func(n int) {
			for k := range n {
				for j := range e.v {
					x := w[(k*e.v+j)%len(w)]
					f.widen(x, j, k)
					put(j, k, x)
				}
			}
		}
		e.loop(unsafe.Offsetof(t.Main), func() { iteration(step); next(step) })
		widenRest(e, iteration, next, b)
	}
	e.VZeroUpper()
	e.Ret()
}

// widenRest emits the k after the last whole iteration: one at a time, or for pairs of bf16 two at
// a time and a last one alone.
func widenRest(e *emitter, iteration, next func(int), b qtype.Type) {
	var t kernel.WidenArgs
	rest := unsafe.Offsetof(t.Rest)
	if b != qtype.BF16 {
		e.loop(rest, func() { iteration(1); next(1) })
		return
	}
	done, top, last := e.NewLabel(), e.NewLabel(), e.NewLabel()
	e.Mov(rCount, e.arg(rest))
	e.Bind(top)
	e.Cmp(rCount, asm.Imm32(2))
	e.Jcc(asm.Below, last)
	iteration(2)
	next(2)
	e.Sub(rCount, asm.Imm32(2))
	e.Jmp(top)
	e.Bind(last)
	e.Test(rCount, rCount)
	e.Jcc(asm.Zero, done)
	iteration(1)
	e.Bind(done)
}
