package vector

import (
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/arm64/asm"
)

// emitRoundBF16 emits the operation of the same name in amd64/vector.
func emitRoundBF16(g gen, minimum uint32) {
	const x, t = block(0), block(1)
	g.pointers(nC0, nC1)
	g.argN(nLen, 0)
	words := []uint32{1, arith.BF16HalfUlp, arith.QuietBit, arith.SignBit, arith.InfBits, minimum}
	for i, w := range words {
		g.Splat(roundConst+asm.V(i), w)
	}
	g.groups(nLen, []cursor{{nC0, 2 * arith.Lanes}, {nC1, 4 * arith.Lanes}}, func(tail bool) {
		if tail {
			g.Loop(nLeft, func() {
				g.I(asm.LDRSP, x.v(0), nC1, asm.Imm(4))
				g.roundBF16(x.v(0), t.v(0))
				g.I(asm.UZP2H, t.v(0), t.v(0), t.v(0))
				g.I(asm.STRHVP, t.v(0), nC0, asm.Imm(2))
			})
			return
		}
		g.load(x, nC1, false)
		each(func(i int) { g.roundBF16(x.v(i), t.v(i)) })
		g.I(asm.UZP2H, t.v(0), t.v(0), t.v(1))
		g.I(asm.UZP2H, t.v(2), t.v(2), t.v(3))
		g.I(asm.STPQ, t.v(0), t.v(2), nC0, asm.Imm(0))
	})
}

// roundConst is the first of the registers with the constants of rounding.
const roundConst = asm.V(16)

// roundBF16 rounds the float32 of `in` to bfloat16 in the upper halves of the words of out.
func (g gen) roundBF16(in, out asm.V) {
	const (
		one     = roundConst + iota
		half    // a unit in the last place of bfloat16, minus one
		quiet   // bit of a quiet NaN
		sign    // bit
		inf     // the bits of infinity
		minimum // magnitudes below become zeros
		size    // magnitude of the value
		where   // mask
		special // what the mask selects
	)
	g.I(asm.USHR4S, out, in, asm.Imm(16))
	g.I(asm.ANDV, out, out, one)
	g.I(asm.ADDV4S, out, out, half)
	g.I(asm.ADDV4S, out, out, in)
	g.I(asm.FABS, size, in)
	g.I(asm.CMGT4S, where, size, inf) // NaN
	g.I(asm.ORRV, special, in, quiet)
	g.I(asm.BIT, out, special, where)
	g.I(asm.CMGT4S, where, minimum, size)
	g.I(asm.ANDV, special, in, sign)
	g.I(asm.BIT, out, special, where)
}
