package vector

import (
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/arm64/asm"
)

// expRegs are the registers of one exponential: p becomes exp(x), the others are overwritten.
type expRegs struct{ p, x, n, z asm.V }

// expOf returns the exponentials of a block, in blocks of registers.
func expOf(p, x, n, z block) []expRegs {
	var out []expRegs
	each(func(i int) { out = append(out, expRegs{p.v(i), x.v(i), n.v(i), z.v(i)}) })
	return out
}

// exp computes several exponentials, interleaved. The upper clamp is omitted if the argument is
// never positive.
func (g gen) exp(positive bool, of []expRegs) {
	all := func(step func(e expRegs)) {
		for _, e := range of {
			step(e)
		}
	}
	with := func(c float32, step func(e expRegs)) {
		g.SplatF(nConst, c)
		all(step)
	}
	if positive {
		with(arith.ExpHi, func(e expRegs) { g.I(asm.FMIN, e.x, e.x, nConst) })
	}
	with(arith.ExpLo, func(e expRegs) { g.I(asm.FMAX, e.x, e.x, nConst) })
	g.SplatF(nConst2, arith.ExpMagic)
	all(func(e expRegs) { g.Move(e.z, nConst2) })
	with(arith.Log2E, func(e expRegs) { g.I(asm.FMLA, e.z, e.x, nConst) })
	all(func(e expRegs) { g.I(asm.FSUB, e.n, e.z, nConst2) })
	with(arith.Ln2Hi, func(e expRegs) { g.I(asm.FMLS, e.x, e.n, nConst) })
	with(arith.Ln2Lo, func(e expRegs) { g.I(asm.FMLS, e.x, e.n, nConst) })
	with(arith.ExpC6, func(e expRegs) { g.Move(e.p, nConst) })
	// The sum of a multiply-add is its destination: p and n take turns, and after an even number of
	// steps it is p's.
	for i, c := range []float32{arith.ExpC5, arith.ExpC4, arith.ExpC3, arith.ExpC2, 1, 1} {
		with(c, func(e expRegs) {
			from, to := e.p, e.n
			if i%2 == 1 {
				from, to = to, from
			}
			g.Move(to, nConst)
			g.I(asm.FMLA, to, from, e.x)
		})
	}
	// The integer k = n sits in the low bits of z above an even constant: 2^(k>>1) and 2^(k-(k>>1))
	// are built from it by shifts that push the constant out, and of the two products only the
	// second can round.
	g.Splat(nConst, arith.OneExponent)
	all(func(e expRegs) {
		g.I(asm.SSHR4S, e.n, e.z, asm.Imm(1))
		g.I(asm.SUBV4S, e.z, e.z, e.n)
		g.I(asm.SHL4S, e.n, e.n, asm.Imm(23))
		g.I(asm.SHL4S, e.z, e.z, asm.Imm(23))
		g.I(asm.ADDV4S, e.n, e.n, nConst)
		g.I(asm.ADDV4S, e.z, e.z, nConst)
		g.I(asm.FMUL, e.p, e.p, e.n)
		g.I(asm.FMUL, e.p, e.p, e.z)
	})
}
