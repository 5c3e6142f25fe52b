package attention

import (
	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/kernel"
)

// roundRows rounds the probabilities of all rows to bfloat16.
func (g *gen) roundRows() {
	g.SetF(g.V(minReg), arith.LeastProbability)
	for r := range g.Rows {
		for half := range 2 {
			at, x := kernel.ScratchScores+r*kernel.ScratchRow+half*bf16Row, g.V((2*r+half)%8)
			low := g.V(16 + (2*r+half)%8)
			g.loadLarge(x, asm.At(scrReg, at+4*arith.Lanes))
			g.loadLarge(low, asm.At(scrReg, at))
			g.I(asm.VCVTNE2PS2BF16, x, x, low)
			g.I(asm.VMOVUPS, asm.At(scrReg, g.bf16At()+r*bf16Row+half*64), x)
		}
	}
}

// roundToFloat rounds the probabilities of all rows to bfloat16 and widens them to float32 in
// place.
func (g *gen) roundToFloat() {
	g.SetF(g.V(minReg), arith.LeastProbability)
	for i := range g.Rows * positions / arith.Lanes {
		x, at := g.V(i%8), asm.At(scrReg, kernel.ScratchScores+4*arith.Lanes*i)
		g.selectLarge(at)
		g.I(asm.VCVTNE2PS2BF16, x, x, at)
		g.I(asm.VPMOVZXWD, x, x.Y())
		g.I(asm.VPSLLD, x.KZ(asm.K1), x, asm.Imm(16))
		g.I(asm.VMOVUPS, at, x)
	}
}

// minReg holds arith.LeastProbability in every lane while probabilities are rounded.
const minReg = 8

// selectLarge sets K1 to the lanes of probabilities that are not too small.
func (g *gen) selectLarge(at asm.Mem) {
	const notAbove = 10 // true for NaN
	g.I(asm.VCMPPSK, asm.K1, g.V(minReg), at, asm.Imm(notAbove))
}

// loadLarge loads probabilities, small ones as zeros.
func (g *gen) loadLarge(x asm.Vec, at asm.Mem) {
	g.selectLarge(at)
	g.I(asm.VMOVUPS, x.KZ(asm.K1), at)
}
