package vecgen

import "sandwich/microkernel/internal/amd64/asm"

// The constants of exp, which are those of microkernel's exp32 (a test holds them equal by
// comparing every result).
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

// expRange holds the registers of a kernel that keep the clamps of exp; hi is -1 where the argument
// is never positive.
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

// expAt is exp on registers of any length.
func (g *gen) expAt(dst, p, x, n, z, lo asm.Vec, hi *asm.Vec) {
	g.expMany(lo, hi, expRegs{dst: dst, p: p, x: x, n: n, z: z})
}

// expRegs are the registers of one exponential; dst is p, or p with an opmask for the result.
type expRegs struct{ dst, p, x, n, z asm.Vec }

// expMany computes several exponentials step by step side by side: one alone is a chain of some
// fifteen instructions, of which each waits for the one before it.
func (g *gen) expMany(lo asm.Vec, hi *asm.Vec, of ...expRegs) {
	each := func(step func(e expRegs)) {
		for _, e := range of {
			step(e)
		}
	}
	if hi != nil {
		each(func(e expRegs) { g.I(asm.VMINPS, e.x, *hi, e.x) }) // a NaN x is the second source and stays
	}
	each(func(e expRegs) { g.I(asm.VMAXPS, e.x, lo, e.x) })
	shifted := func(e expRegs) asm.Vec {
		if g.wide {
			return e.n
		}
		return e.z
	}
	each(func(e expRegs) { g.I(asm.VBROADCASTSS, shifted(e), g.ConstF32(expMagic)) })
	each(func(e expRegs) { g.I(asm.VFMADD231PS, shifted(e), e.x, g.splatF(log2E)) })
	each(func(e expRegs) { g.I(asm.VSUBPS, e.n, shifted(e), g.splatF(expMagic)) })
	each(func(e expRegs) { g.I(asm.VFNMADD231PS, e.x, e.n, g.splatF(ln2Hi)) })
	each(func(e expRegs) { g.I(asm.VFNMADD231PS, e.x, e.n, g.splatF(ln2Lo)) })
	each(func(e expRegs) { g.I(asm.VBROADCASTSS, e.p, g.ConstF32(expC6)) })
	for _, c := range []float32{expC5, expC4, expC3, expC2, 1, 1} {
		each(func(e expRegs) { g.I(asm.VFMADD213PS, e.p, e.x, g.splatF(c)) })
	}
	if g.wide {
		each(func(e expRegs) { g.I(asm.VSCALEFPS, e.dst, e.p, e.n) })
		return
	}
	// The integer k = n sits in the low bits of z above an even constant: 2^(k>>1) and 2^(k-(k>>1))
	// are built from it by shifts that push the constant out, and of the two products only the
	// second can round.
	each(func(e expRegs) {
		g.I(asm.VPSRAD, e.n, e.z, asm.Imm(1))
		g.I(asm.VPSUBD, e.z, e.z, e.n)
		g.I(asm.VPSLLD, e.n, e.n, asm.Imm(23))
		g.I(asm.VPSLLD, e.z, e.z, asm.Imm(23))
		g.I(asm.VPADDD, e.n, e.n, g.splat(bias))
		g.I(asm.VPADDD, e.z, e.z, g.splat(bias))
		g.I(asm.VMULPS, e.p, e.p, e.n)
		g.I(asm.VMULPS, e.dst, e.p, e.z)
	})
}
