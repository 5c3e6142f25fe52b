package vector

import (
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/arm64/asm"
)

// int8s loads sixteen int8 as float32.
func (g gen) int8s(b block, p asm.X, at int) {
	g.I(asm.LDRQ, nConst, p, asm.Imm(at))
	g.I(asm.SSHLL8B, nConst2, nConst, asm.Imm(0))
	g.I(asm.SSHLLB2, nConst, nConst, asm.Imm(0))
	g.I(asm.SSHLL4H, b.v(0), nConst2, asm.Imm(0))
	g.I(asm.SSHLL8H, b.v(1), nConst2, asm.Imm(0))
	g.I(asm.SSHLL4H, b.v(2), nConst, asm.Imm(0))
	g.I(asm.SSHLL8H, b.v(3), nConst, asm.Imm(0))
	g.op2(asm.SCVTF, b, b)
}

// emitWidenK8 emits the operation of the same name in amd64/vector.
func emitWidenK8(g gen) {
	const x, scale = block(0), block(1)
	g.pointers(nC0, nC1, nC2)
	g.argN(nRows, 0)
	g.overRows(nRows, func() {
		g.load(scale, nC2, false)
		g.MovImm(nTurn, arith.ScaleDims)
		g.Loop(nTurn, func() {
			g.int8s(x, nC1, 0)
			g.op3(asm.FMUL, x, x, scale)
			g.store(x, nC0, false)
			g.AddImm(nC1, nC1, arith.Lanes)
			g.AddImm(nC0, nC0, 4*arith.Lanes)
		})
		g.AddImm(nC2, nC2, 4*positions)
	})
}

// emitWidenV8 emits the operation of the same name in amd64/vector.
func emitWidenV8(g gen) {
	const x = block(0)
	scale := asm.V(28)
	g.pointers(nC0, nC1, nC2)
	g.argN(nRows, 0)
	g.overRows(nRows, func() {
		g.MovImm(nTurn, positions)
		g.Loop(nTurn, func() {
			g.I(asm.LD1RP, scale, nC2)
			for panel := range 2 {
				g.int8s(x, nC1, panel*positions*arith.Lanes)
				g.opAll(asm.FMUL, x, x, scale)
				g.AddImm(nT0, nC0, 4*panel*positions*arith.Lanes)
				g.store(x, nT0, false)
			}
			g.AddImm(nC1, nC1, arith.Lanes)
			g.AddImm(nC0, nC0, 4*arith.Lanes)
		})
		g.AddImm(nC1, nC1, positions*arith.Lanes)
		g.AddImm(nC0, nC0, 4*positions*arith.Lanes)
	})
}
