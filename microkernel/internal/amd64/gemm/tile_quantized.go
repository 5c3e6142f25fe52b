package gemm

import (
	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// newQuantized allocates the tile of the chain "wide" for quantized weights: each vector of W is
// dequantized in registers and multiplied by all rows. As many vectors of a sub-block as registers
// allow are processed together, so that independent chains overlap.
func newQuantized(a *asm.Asm, s spec) (_ *emitter, emit func()) {
	const limit = 4
	for il := min(s.NR/s.ISA.Lanes(), limit); ; il-- {
		e := newEmitter(a, s)
		u := newUnpacker(e, il)
		var x asm.Vec
		if s.Form == kernel.Load {
			x = e.vec()
		}
		if il == 1 || e.used <= s.ISA.Registers() {
			return e, func() { u.tile(il, x) }
		}
	}
}

// tile emits the function that dequantizes il vectors side by side.
func (u *unpacker) tile(il int, x asm.Vec) {
	u.function(u.setup, func() {
		u.blocks(u.mainLoop, func() {
			for j0 := 0; j0 < u.v; j0 += il {
				u.subBlock(j0, min(il, u.v-j0), x)
			}
			u.advance(u.aBase, 4*qtype.SubBlockK)
		})
	})
}

// subBlock emits the 32 k of the vectors j0 to j0+n-1.
func (u *unpacker) subBlock(j0, n int, x asm.Vec) {
	bytes := u.linesOfSubBlock()
	for k := range qtype.SubBlockK {
		if k%u.Span() == 0 {
			for i := range n {
				u.scales(i, j0+i, k)
			}
		}
		if j0 == 0 && k%4 == 0 {
			u.prefetch(bytes*k/qtype.SubBlockK, bytes*(k+4)/qtype.SubBlockK)
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
