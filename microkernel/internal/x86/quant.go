package x86

import (
	"sandwich/microkernel/internal/asm"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// emitQuant generates the tile of the chain "wide" for weights in blocks: each vector of W is unpacked in registers and
// multiplied by all rows. Panels are taken il vectors at a time, turn by turn.
func emitQuant(a *asm.Asm, s spec) {
	e := newEmitter(a, s)
	il := s.interleave()
	u := newUnpacker(e, il)
	var x asm.Vec
	if s.Form == kernel.Load {
		x = e.vec()
	}
	e.function(u.setup, func() {
		u.blocks(e.mainLoop, func() {
			for j0 := 0; j0 < e.v; j0 += il {
				u.turn(j0, min(il, e.v-j0), x)
			}
			e.advance(e.aBase, 4*qtype.TurnK)
		})
	})
}

// turn is the 32 k of the vectors j0 to j0+n-1.
func (u *unpacker) turn(j0, n int, x asm.Vec) {
	bytes := u.linesOfTurn()
	for k := range qtype.TurnK {
		if k%u.Span() == 0 {
			for i := range n {
				u.scales(i, j0+i, k)
			}
		}
		if j0 == 0 && k%4 == 0 {
			u.prefetch(bytes*k/qtype.TurnK, bytes*(k+4)/qtype.TurnK)
		}
		for i := range n {
			u.value(i, j0+i, k)
		}
		for r := range u.s.MR {
			a := u.a(r, 4*k)
			if u.s.Form == kernel.Load {
				u.I(asm.VBROADCASTSS, x, a)
				a = asm.Mem{}
			}
			for i := range n {
				acc := u.acc[r*u.v+j0+i]
				if u.s.Form == kernel.Load {
					u.I(asm.VFMADD231PS, acc, x, u.w[i])
				} else {
					u.I(asm.VFMADD231PS, acc, u.w[i], a.Bcast())
				}
			}
		}
	}
}
