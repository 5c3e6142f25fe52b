package lanes

import (
	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/arith"
)

// RoundUpper rounds the float32 of register x to bfloat16 in the upper halves of the words of
// register t, to nearest even; the lower halves are undefined. Magnitudes below minimum, given as
// float32 bits, become zeros; 0 keeps all. It uses integer instructions only, so that it needs no
// CPU with bfloat16, and overwrites the two registers after t.
func (g *Gen) RoundUpper(x, t int, minimum uint32) {
	in, out, size, special := g.V(x), g.V(t), g.V(t+1), g.V(t+2)
	g.I(asm.VPSRLD, out, in, asm.Imm(16))
	g.I(asm.VANDPS, out, out, g.Splat(1))
	g.I(asm.VPADDD, out, out, g.Splat(arith.BF16HalfUlp))
	g.I(asm.VPADDD, out, out, in)
	g.I(asm.VANDPS, size, in, g.Splat(arith.SignBit-1))
	g.I(asm.VORPS, special, in, g.Splat(arith.QuietBit))
	g.selectAbove(out, special, out, size, arith.InfBits) // NaN
	if minimum > 0 {
		g.I(asm.VANDPS, special, in, g.Splat(arith.SignBit))
		g.selectAbove(out, out, special, size, minimum-1)
	}
}

// selectAbove sets the lanes of dst to those of yes where the integers of size exceed bound, and to
// those of no elsewhere.
func (g *Gen) selectAbove(dst, yes, no, size asm.Vec, bound uint32) {
	if g.Wide {
		const k, greater = asm.K3, 6
		g.I(asm.VPCMPDK, k, size, g.Splat(bound), asm.Imm(greater))
		g.I(asm.VBLENDMPS, dst.K(k), no, yes)
		return
	}
	g.I(asm.VPCMPGTD, g.V(Scratch), size, g.Splat(bound))
	g.I(asm.VBLENDVPS, dst, no, yes, g.V(Scratch))
}
