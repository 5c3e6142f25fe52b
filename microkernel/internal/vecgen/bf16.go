package vecgen

import (
	"sandwich/microkernel/internal/amd64/asm"
	a64 "sandwich/microkernel/internal/arm64/asm"
)

// Of the bits of a float32.
const (
	signBit    = 0x80000000
	quietBit   = 0x00400000
	leastFloat = 0x00800000 // the smallest normal number
	belowHalf  = 0x7fff     // of the last place of a bfloat16, less one: with the last bit that stays, ties go to even
)

// emitRoundBF16: P dst, src; N n. What is below least, given in bits, becomes a zero. By integers,
// so that it needs no CPU that has bfloat16.
func emitRoundBF16(g *gen, least uint32) {
	const x, t = 0, 1
	g.pointers(p0, p1)
	g.Mov(n0, argN(0))
	g.overGroups(n0, func(h int, tail bool) {
		dst := asm.AtIndex(p0, index, 2, g.part(h, 2))
		switch {
		case g.wide:
			g.load(g.v(x), g.elem(p1, h), h, tail)
			g.roundBF16(x, t, least)
			if tail {
				dst = dst.K(tailMask)
			}
			g.I(asm.VPMOVDW, dst, asm.Z(t))
		case tail:
			g.tailByElement(h, func() {
				g.I(asm.VMOVSS, asm.X(x), g.elem(p1, 0))
				g.roundBF16(x, t, least)
				g.I(asm.VPEXTRW, asm.AtIndex(p0, index, 2, 0), asm.X(t), asm.Imm(0))
			})
		default:
			g.load(g.v(x), g.elem(p1, h), h, false)
			g.roundBF16(x, t, least)
			g.I(asm.VEXTRACTI128, asm.X(x), asm.Y(t), asm.Imm(1))
			g.I(asm.VPACKUSDW, asm.X(t), asm.X(t), asm.X(x))
			g.I(asm.VMOVUPS, dst, asm.X(t))
		}
	})
}

// roundBF16 makes the words of register t the bfloat16 nearest to the float32 of x, or zeros below
// least, and overwrites the registers behind t.
func (g *gen) roundBF16(x, t int, least uint32) {
	g.roundUpper(x, t, least)
	g.I(asm.VPSRLD, g.v(t), g.v(t), asm.Imm(16))
}

// roundUpper is roundBF16 into the upper halves of the words; the lower ones hold anything. With a
// least of 0 nothing becomes a zero.
func (g *gen) roundUpper(x, t int, least uint32) {
	in, out, size, special := g.v(x), g.v(t), g.v(t+1), g.v(t+2)
	g.I(asm.VPSRLD, out, in, asm.Imm(16))
	g.I(asm.VANDPS, out, out, g.splat(1))
	g.I(asm.VPADDD, out, out, g.splat(belowHalf))
	g.I(asm.VPADDD, out, out, in)
	g.I(asm.VANDPS, size, in, g.splat(signBit-1))
	g.I(asm.VORPS, special, in, g.splat(quietBit))
	g.whereAbove(out, special, out, size, infBits) // NaN
	if least > 0 {
		g.I(asm.VANDPS, special, in, g.splat(signBit))
		g.whereAbove(out, out, special, size, least-1)
	}
}

// whereAbove makes dst the lanes of yes where the integers of size are above bound, and those of no
// elsewhere.
func (g *gen) whereAbove(dst, yes, no, size asm.Vec, bound uint32) {
	if g.wide {
		const k, greater = asm.K3, 6
		g.I(asm.VPCMPDK, k, size, g.splat(bound), asm.Imm(greater))
		g.I(asm.VBLENDMPS, dst.K(k), no, yes)
		return
	}
	g.I(asm.VPCMPGTD, g.v(scratch), size, g.splat(bound))
	g.I(asm.VBLENDVPS, dst, no, yes, g.v(scratch))
}

// neonRoundBF16: arguments as emitRoundBF16.
func neonRoundBF16(g neonGen, least uint32) {
	const x, t = block(0), block(1)
	g.pointers(nC0, nC1)
	g.argN(nLen, 0)
	words := []uint32{1, belowHalf, quietBit, signBit, infBits, least}
	for i, w := range words {
		g.Splat(neonRound+a64.V(i), w)
	}
	g.groups(nLen, []cursor{{nC0, 2 * group}, {nC1, 4 * group}}, func(tail bool) {
		if tail {
			g.Loop(nLeft, func() {
				g.I(a64.LDRSP, x.v(0), nC1, a64.Imm(4))
				g.roundBF16(x.v(0), t.v(0))
				g.I(a64.UZP2H, t.v(0), t.v(0), t.v(0))
				g.I(a64.STRHVP, t.v(0), nC0, a64.Imm(2))
			})
			return
		}
		g.load(x, nC1, false)
		each(func(i int) { g.roundBF16(x.v(i), t.v(i)) })
		g.I(a64.UZP2H, t.v(0), t.v(0), t.v(1))
		g.I(a64.UZP2H, t.v(2), t.v(2), t.v(3))
		g.I(a64.STPQ, t.v(0), t.v(2), nC0, a64.Imm(0))
	})
}

// neonRound is the first of the registers with the constants of rounding.
const neonRound = a64.V(16)

// roundBF16 makes the upper halves of the words of out the bfloat16 nearest to the float32 of in.
func (g neonGen) roundBF16(in, out a64.V) {
	const one, half, quiet, sign, inf, least = neonRound, neonRound + 1, neonRound + 2, neonRound + 3, neonRound +
		4, neonRound + 5
	const size, where, special = neonRound + 6, neonRound + 7, neonRound + 8
	g.I(a64.USHR4S, out, in, a64.Imm(16))
	g.I(a64.ANDV, out, out, one)
	g.I(a64.ADDV4S, out, out, half)
	g.I(a64.ADDV4S, out, out, in)
	g.I(a64.FABS, size, in)
	g.I(a64.CMGT4S, where, size, inf) // NaN
	g.I(a64.ORRV, special, in, quiet)
	g.I(a64.BIT, out, special, where)
	g.I(a64.CMGT4S, where, least, size)
	g.I(a64.ANDV, special, in, sign)
	g.I(a64.BIT, out, special, where)
}
