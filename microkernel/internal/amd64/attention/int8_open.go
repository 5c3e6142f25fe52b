package attention

import "sandwich/microkernel/internal/amd64/asm"

// openIntegers converts the block at kReg and vReg to transposed lines and float32 scales at
// stateReg.
func (g *gen) openIntegers() {
	g.loadLineOrder()
	g.Mov(bPtr, stateReg)
	for _, block := range []asm.Reg{kReg, vReg} {
		g.Mov(aPtr, block)
		g.MovImm(count, uint64(g.HeadDim/setLines))
		loop := g.Here()
		for i := range setLines {
			g.loadLine(g.V(i), asm.At(aPtr, lineBytes*i), block == kReg)
			g.Prefetch(asm.T1, asm.At(ahead, lineBytes*i))
		}
		for i := range setLines {
			g.I(asm.VMOVUPS, asm.At(bPtr, lineBytes*i), g.V(i))
		}
		for _, p := range []asm.Reg{aPtr, bPtr, ahead} {
			g.Add(p, asm.Imm32(setLines*lineBytes))
		}
		g.Dec(count)
		g.Jcc(asm.NotZero, loop)
		g.prefetch(2 * g.sets())
		g.widenSets()
	}
}
