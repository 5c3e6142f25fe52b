package lanes

import (
	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/arith"
)

// ExpRange are the registers of the clamps of exp. Hi is -1 if the argument is never positive.
type ExpRange struct{ Lo, Hi int }

// SetExpRange loads the clamps; call it before the loop.
func (g *Gen) SetExpRange(r ExpRange) {
	g.SetF(g.V(r.Lo), arith.ExpLo)
	if r.Hi >= 0 {
		g.SetF(g.V(r.Hi), arith.ExpHi)
	}
}

// Exp computes p = exp(x). It overwrites x, n and, with AVX2, z.
func (g *Gen) Exp(p, x, n, z int, r ExpRange) {
	g.ExpAt(g.V(p), g.V(p), g.V(x), g.V(n), g.V(z), g.V(r.Lo), g.RangeHi(r))
}

// RangeHi returns the register of the upper clamp, or nil.
func (g *Gen) RangeHi(r ExpRange) *asm.Vec {
	if r.Hi < 0 {
		return nil
	}
	v := g.V(r.Hi)
	return &v
}

// ExpAt is Exp on registers of any length.
func (g *Gen) ExpAt(dst, p, x, n, z, lo asm.Vec, hi *asm.Vec) {
	g.ExpMany(lo, hi, ExpRegs{Dst: dst, P: p, X: x, N: n, Z: z})
}

// ExpRegs are the registers of one exponential. Dst is P, or P with an opmask for the result.
type ExpRegs struct{ Dst, P, X, N, Z asm.Vec }

// ExpMany computes several exponentials with interleaved instructions: a single one is a chain of
// about fifteen instructions, each of which waits for the one before.
func (g *Gen) ExpMany(lo asm.Vec, hi *asm.Vec, of ...ExpRegs) {
	each := func(step func(e ExpRegs)) {
		for _, e := range of {
			step(e)
		}
	}
	if hi != nil {
		each(func(e ExpRegs) { g.I(asm.VMINPS, e.X, *hi, e.X) }) // a NaN x is the second source and stays
	}
	each(func(e ExpRegs) { g.I(asm.VMAXPS, e.X, lo, e.X) })
	shifted := func(e ExpRegs) asm.Vec {
		if g.Wide {
			return e.N
		}
		return e.Z
	}
	each(func(e ExpRegs) { g.I(asm.VBROADCASTSS, shifted(e), g.ConstF32(arith.ExpMagic)) })
	each(func(e ExpRegs) { g.I(asm.VFMADD231PS, shifted(e), e.X, g.SplatF(arith.Log2E)) })
	each(func(e ExpRegs) { g.I(asm.VSUBPS, e.N, shifted(e), g.SplatF(arith.ExpMagic)) })
	each(func(e ExpRegs) { g.I(asm.VFNMADD231PS, e.X, e.N, g.SplatF(arith.Ln2Hi)) })
	each(func(e ExpRegs) { g.I(asm.VFNMADD231PS, e.X, e.N, g.SplatF(arith.Ln2Lo)) })
	each(func(e ExpRegs) { g.I(asm.VBROADCASTSS, e.P, g.ConstF32(arith.ExpC6)) })
	for _, c := range []float32{arith.ExpC5, arith.ExpC4, arith.ExpC3, arith.ExpC2, 1, 1} {
		each(func(e ExpRegs) { g.I(asm.VFMADD213PS, e.P, e.X, g.SplatF(c)) })
	}
	if g.Wide {
		each(func(e ExpRegs) { g.I(asm.VSCALEFPS, e.Dst, e.P, e.N) })
		return
	}
	// The integer k = n is in the low bits of z above an even constant. 2^(k>>1) and 2^(k-(k>>1))
	// are built from it by shifts that push the constant out; of the two products only the second
	// can round.
	each(func(e ExpRegs) {
		g.I(asm.VPSRAD, e.N, e.Z, asm.Imm(1))
		g.I(asm.VPSUBD, e.Z, e.Z, e.N)
		g.I(asm.VPSLLD, e.N, e.N, asm.Imm(23))
		g.I(asm.VPSLLD, e.Z, e.Z, asm.Imm(23))
		g.I(asm.VPADDD, e.N, e.N, g.Splat(arith.OneExponent))
		g.I(asm.VPADDD, e.Z, e.Z, g.Splat(arith.OneExponent))
		g.I(asm.VMULPS, e.P, e.P, e.N)
		g.I(asm.VMULPS, e.Dst, e.P, e.Z)
	})
}

// CapRegs are the registers of a soft cap: x becomes cap*tanh(x*factor/2), computed as
// cap - 2cap/(exp(x*factor)+1).
type CapRegs struct{ X, P, N, Z, Factor, Cap, Twice asm.Vec }

// SoftCap caps register c.X.
func (g *Gen) SoftCap(c CapRegs, lo asm.Vec, hi *asm.Vec) {
	g.I(asm.VMULPS, c.X, c.X, c.Factor)
	g.ExpAt(c.P, c.P, c.X, c.N, c.Z, lo, hi)
	g.I(asm.VADDPS, c.P, c.P, g.SplatF(1))
	g.I(asm.VDIVPS, c.P, c.Twice, c.P)
	g.I(asm.VSUBPS, c.X, c.Cap, c.P)
}
