package vecgen

import a64 "sandwich/microkernel/internal/arm64/asm"

// int8s loads sixteen int8 as float32.
func (g neonGen) int8s(b block, p a64.X, at int) {
	g.I(a64.LDRQ, nConst, p, a64.Imm(at))
	g.I(a64.SSHLL8B, nConst2, nConst, a64.Imm(0))
	g.I(a64.SSHLLB2, nConst, nConst, a64.Imm(0))
	g.I(a64.SSHLL4H, b.v(0), nConst2, a64.Imm(0))
	g.I(a64.SSHLL8H, b.v(1), nConst2, a64.Imm(0))
	g.I(a64.SSHLL4H, b.v(2), nConst, a64.Imm(0))
	g.I(a64.SSHLL8H, b.v(3), nConst, a64.Imm(0))
	g.op2(a64.SCVTF, b, b)
}

// neonWidenK8: arguments as emitWidenK8.
func neonWidenK8(g neonGen) {
	const x, scale = block(0), block(1)
	g.pointers(nC0, nC1, nC2)
	g.argN(nRows, 0)
	g.overRows(nRows, func() {
		g.load(scale, nC2, false)
		g.MovImm(nTurn, scaleDims)
		g.Loop(nTurn, func() {
			g.int8s(x, nC1, 0)
			g.op3(a64.FMUL, x, x, scale)
			g.store(x, nC0, false)
			g.AddImm(nC1, nC1, group)
			g.AddImm(nC0, nC0, 4*group)
		})
		g.AddImm(nC2, nC2, 4*positions)
	})
}

// neonWidenV8: arguments as emitWidenV8.
func neonWidenV8(g neonGen) {
	const x = block(0)
	scale := a64.V(28)
	g.pointers(nC0, nC1, nC2)
	g.argN(nRows, 0)
	g.overRows(nRows, func() {
		g.MovImm(nTurn, positions)
		g.Loop(nTurn, func() {
			g.I(a64.LD1RP, scale, nC2)
			for panel := range 2 {
				g.int8s(x, nC1, panel*positions*group)
				g.opAll(a64.FMUL, x, x, scale)
				g.AddImm(nT0, nC0, 4*panel*positions*group)
				g.store(x, nT0, false)
			}
			g.AddImm(nC1, nC1, group)
			g.AddImm(nC0, nC0, 4*group)
		})
		g.AddImm(nC1, nC1, positions*group)
		g.AddImm(nC0, nC0, 4*positions*group)
	})
}
