package vecgen

import a64 "sandwich/microkernel/internal/arm64/asm"

// neonExp is the registers of one exponential: p becomes exp(x), the others are clobbered.
type neonExp struct{ p, x, n, z a64.V }

// expOf is the exponentials of a block, in blocks of registers.
func expOf(p, x, n, z block) []neonExp {
	var out []neonExp
	each(func(i int) { out = append(out, neonExp{p.v(i), x.v(i), n.v(i), z.v(i)}) })
	return out
}

// exp computes several exponentials side by side. Where the argument is never positive its upper
// clamp is left out.
func (g neonGen) exp(positive bool, of []neonExp) {
	all := func(step func(e neonExp)) {
		for _, e := range of {
			step(e)
		}
	}
	with := func(c float32, step func(e neonExp)) {
		g.SplatF(nConst, c)
		all(step)
	}
	if positive {
		with(expHi, func(e neonExp) { g.I(a64.FMIN, e.x, e.x, nConst) })
	}
	with(expLo, func(e neonExp) { g.I(a64.FMAX, e.x, e.x, nConst) })
	g.SplatF(nConst2, expMagic)
	all(func(e neonExp) { g.Move(e.z, nConst2) })
	with(log2E, func(e neonExp) { g.I(a64.FMLA, e.z, e.x, nConst) })
	all(func(e neonExp) { g.I(a64.FSUB, e.n, e.z, nConst2) })
	with(ln2Hi, func(e neonExp) { g.I(a64.FMLS, e.x, e.n, nConst) })
	with(ln2Lo, func(e neonExp) { g.I(a64.FMLS, e.x, e.n, nConst) })
	with(expC6, func(e neonExp) { g.Move(e.p, nConst) })
	// The sum of a multiply-add is its destination: p and n take turns, and after an even number of
	// steps it is p's.
	for i, c := range []float32{expC5, expC4, expC3, expC2, 1, 1} {
		with(c, func(e neonExp) {
			from, to := e.p, e.n
			if i%2 == 1 {
				from, to = to, from
			}
			g.Move(to, nConst)
			g.I(a64.FMLA, to, from, e.x)
		})
	}
	// The integer k = n sits in the low bits of z above an even constant: 2^(k>>1) and 2^(k-(k>>1))
	// are built from it by shifts that push the constant out, and of the two products only the
	// second can round.
	g.Splat(nConst, bias)
	all(func(e neonExp) {
		g.I(a64.SSHR4S, e.n, e.z, a64.Imm(1))
		g.I(a64.SUBV4S, e.z, e.z, e.n)
		g.I(a64.SHL4S, e.n, e.n, a64.Imm(23))
		g.I(a64.SHL4S, e.z, e.z, a64.Imm(23))
		g.I(a64.ADDV4S, e.n, e.n, nConst)
		g.I(a64.ADDV4S, e.z, e.z, nConst)
		g.I(a64.FMUL, e.p, e.p, e.n)
		g.I(a64.FMUL, e.p, e.p, e.z)
	})
}
