package gemm

import (
	"unsafe"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/kernel"
)

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
