package vecgen

import "sandwich/microkernel/internal/asm"

// The constants of exp, which are those of microkernel's exp32 (a test holds them equal by comparing every result).
const (
	expLo    = -104
	expHi    = 89
	log2E    = 0x1.715476p+0
	ln2Hi    = 0x1.62e4p-1
	ln2Lo    = 0x1.7f7d1cp-20
	expC2    = 0x1p-1
	expC3    = 0x1.5554dcp-3
	expC4    = 0x1.55551ap-5
	expC5    = 0x1.120ba2p-7
	expC6    = 0x1.6d113cp-10
	expMagic = 0x1.8p23
	bias     = 127 << 23 // the exponent field of 1.0
)

// expRange holds the registers of a kernel that keep the clamps of exp; hi is -1 where the argument is never positive.
type expRange struct{ lo, hi int }

// setExpRange loads the clamps once, before the loop.
func (g *gen) setExpRange(r expRange) {
	g.setF(g.v(r.lo), expLo)
	if r.hi >= 0 {
		g.setF(g.v(r.hi), expHi)
	}
}

// exp computes p = exp(x). x, n and z are clobbered; z is used with AVX2 only.
func (g *gen) exp(p, x, n, z int, r expRange) {
	g.expAt(g.v(p), g.v(p), g.v(x), g.v(n), g.v(z), g.v(r.lo), g.rangeHi(r))
}

func (g *gen) rangeHi(r expRange) *asm.Vec {
	if r.hi < 0 {
		return nil
	}
	v := g.v(r.hi)
	return &v
}

// expAt is exp on registers of any length, dst being p or p with an opmask for the result.
func (g *gen) expAt(dst, p, x, n, z, lo asm.Vec, hi *asm.Vec) {
	if hi != nil {
		g.I(asm.VMINPS, x, *hi, x) // a NaN x is the second source and stays
	}
	g.I(asm.VMAXPS, x, lo, x)
	shifted := n
	if !g.wide {
		shifted = z
	}
	g.I(asm.VBROADCASTSS, shifted, g.ConstF32(expMagic))
	g.I(asm.VFMADD231PS, shifted, x, g.splatF(log2E))
	g.I(asm.VSUBPS, n, shifted, g.splatF(expMagic))
	g.I(asm.VFNMADD231PS, x, n, g.splatF(ln2Hi))
	g.I(asm.VFNMADD231PS, x, n, g.splatF(ln2Lo))
	g.I(asm.VBROADCASTSS, p, g.ConstF32(expC6))
	for _, c := range []float32{expC5, expC4, expC3, expC2, 1, 1} {
		g.I(asm.VFMADD213PS, p, x, g.splatF(c))
	}
	if g.wide {
		g.I(asm.VSCALEFPS, dst, p, n)
		return
	}
	// The integer k = n sits in the low bits of z above an even constant: 2^(k>>1) and 2^(k-(k>>1)) are built from it
	// by shifts that push the constant out, and of the two products only the second can round.
	g.I(asm.VPSRAD, n, z, asm.Imm(1))
	g.I(asm.VPSUBD, z, z, n)
	g.I(asm.VPSLLD, n, n, asm.Imm(23))
	g.I(asm.VPSLLD, z, z, asm.Imm(23))
	g.I(asm.VPADDD, n, n, g.splat(bias))
	g.I(asm.VPADDD, z, z, g.splat(bias))
	g.I(asm.VMULPS, p, p, n)
	g.I(asm.VMULPS, dst, p, z)
}
