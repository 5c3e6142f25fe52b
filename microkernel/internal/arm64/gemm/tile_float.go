package gemm

import (
	"unsafe"

	"sandwich/microkernel/internal/arm64/asm"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// newFloat allocates the tile of the chain "wide" for weights without scales. A register holds an
// element of A in all lanes (Load) or four consecutive k of a row, of which each FMLA uses one
// lane (Lane).
func newFloat(a *asm.Asm, s spec) (_ *tile, emit func()) {
	e := &floatTile{tile: newTile(a, s)}
	e.a = e.vecs(s.MR)
	if s.B == qtype.BF16 {
		e.high = e.vec()
	}
	e.w = e.vecs(max(2, min(8, e.left())))
	return e.tile, func() { e.function(e.setup, e.body) }
}

type floatTile struct {
	*tile
	a    []asm.V // per row
	w    []asm.V // vectors of W in flight, used one after another
	high asm.V   // bf16: mask of the upper halves of 32-bit words
}

func (e *floatTile) setup() {
	if e.s.B == qtype.BF16 {
		e.Splat(e.high, 0xFFFF0000)
	}
}

func (e *floatTile) body() {
	var t kernel.TileArgs
	e.loop(unsafe.Offsetof(t.Main), func() { e.steps(e.s.KU) })
	if e.s.B == qtype.BF16 {
		e.loop(unsafe.Offsetof(t.Rest), func() { e.steps(2) })
		e.loop(unsafe.Offsetof(t.Odd), func() { e.steps(1) })
		return
	}
	e.loop(unsafe.Offsetof(t.Rest), func() { e.steps(1) })
}

// steps emits n consecutive k and advances the pointers. Vectors of W are loaded as early as
// registers allow.
func (e *floatTile) steps(n int) {
	bytes := e.s.B.PanelOffset(n)
	total := n * e.v
	for i := range min(len(e.w), total) {
		e.widen(e.w[i], i%e.v, i/e.v)
	}
	for i := range total {
		k, j := i/e.v, i%e.v
		if j == 0 {
			if bytes >= 64*n || k%2 == 0 {
				e.prefetch(e.s.B.PanelOffset(k), e.s.B.PanelOffset(k)+1)
			}
			e.elements(k, n)
		}
		w := e.w[i%len(e.w)]
		for r, a := range e.a {
			acc := e.acc[r*e.v+j]
			if e.s.Form == kernel.Load {
				e.I(asm.FMLA, acc, w, a)
			} else {
				e.I(asm.FMLAL, acc, w, a, asm.Imm(k%4))
			}
		}
		if next := i + len(e.w); next < total {
			e.widen(w, next%e.v, next/e.v)
		}
	}
	if e.s.Form == kernel.Lane {
		e.advance(e.aBase, 4*n)
	}
	e.advance(e.bBase, bytes)
}

// elements loads what step k of n needs of each row of A.
func (e *floatTile) elements(k, n int) {
	for r, a := range e.a {
		p := e.aBase[r]
		switch {
		case e.s.Form == kernel.Load:
			e.I(asm.LD1RP, a, p)
		case k%4 != 0:
		case n == 1:
			e.I(asm.LDRS, a, p, asm.Imm(0))
		case n == 2:
			e.I(asm.LDRD, a, p, asm.Imm(0))
		default:
			e.I(asm.LDRQ, a, p, asm.Imm(4*k))
		}
	}
}

// widen loads vector j of step k into w as float32.
func (e *floatTile) widen(w asm.V, j, k int) {
	p, part := e.panelOf(j), j%perPanel
	switch e.s.B {
	case qtype.F32:
		e.I(asm.LDRQ, w, p, asm.Imm(64*k+16*part))
	case qtype.F16:
		e.I(asm.LDRD, w, p, asm.Imm(32*k+8*part))
		e.I(asm.FCVTL, w, w)
	case qtype.BF16:
		e.I(asm.LDRQ, w, p, asm.Imm(64*(k/2)+16*part))
		if k%2 == 1 {
			e.I(asm.ANDV, w, w, e.high)
		} else {
			e.I(asm.SHL4S, w, w, asm.Imm(16))
		}
	}
}
