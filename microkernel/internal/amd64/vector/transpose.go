package vector

import (
	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/kernel"
)

// quadWords is the number of words of a row that one step transposes: a 128-bit lane.
const quadWords = 4

// Transpose returns the code of a transpose. It uses no more than AVX2 at every level.
func (v Generator) Transpose(t kernel.Transpose) ([]byte, error) {
	g := newGen(asm.AVX2)
	g.pointers(p0, p1)
	g.Mov(rows, argN(0))
	g.OverRows(rows, func() {
		const low, high = 8, 12 // four registers each: columns 0 to 7 and 8 to 15 of four lines
		g.transposeEight(low, 0)
		g.transposeEight(high, 8*kernel.TransposeStride)
		for i := range quadWords {
			line := asm.At(p0, i*4*arith.Lanes)
			if t == kernel.TransposeHalves {
				g.splitHalves(line, asm.Y(low+i), asm.Y(high+i))
				continue
			}
			g.I(asm.VMOVUPS, line, asm.Y(low+i))
			g.I(asm.VMOVUPS, line.Off(32), asm.Y(high+i))
		}
		g.Add(p1, asm.Imm32(4*quadWords))
		g.Add(p0, asm.Imm32(4*quadWords*arith.Lanes))
	})
	return g.End()
}

// transposeEight loads four words of each of eight rows, the first at `at` bytes from p1, into four
// registers starting at `to`: each register gets one word of every row. It overwrites registers 0
// to 7.
func (g gen) transposeEight(to, at int) {
	const x, t = 0, 4
	for i := range 4 {
		row := asm.At(p1, at+i*kernel.TransposeStride)
		g.I(asm.VMOVUPS, asm.X(x+i), row)
		g.I(asm.VINSERTF128, asm.Y(x+i), asm.Y(x+i), row.Off(4*kernel.TransposeStride), asm.Imm(1))
	}
	for i := range 2 {
		a, b := asm.Y(x+2*i), asm.Y(x+2*i+1)
		g.I(asm.VUNPCKLPS, asm.Y(t+2*i), a, b)
		g.I(asm.VUNPCKHPS, asm.Y(t+2*i+1), a, b)
	}
	const lowPairs, highPairs = 0x44, 0xEE
	for i := range 2 {
		a, b := asm.Y(t+i), asm.Y(t+2+i)
		g.I(asm.VSHUFPS, asm.Y(to+2*i), a, b, asm.Imm(lowPairs))
		g.I(asm.VSHUFPS, asm.Y(to+2*i+1), a, b, asm.Imm(highPairs))
	}
}

// splitHalves writes a line of the lower halves of sixteen words and, after it, one of the upper
// halves.
func (g gen) splitHalves(line asm.Mem, low, high asm.Vec) {
	const inOrder = 0xD8 // quarters 0, 2, 1, 3: packing works within each 128-bit lane
	const lower = 0xFFFF
	a, b := asm.Y(0), asm.Y(1)
	g.I(asm.VPAND, a, low, g.Splat(lower))
	g.I(asm.VPAND, b, high, g.Splat(lower))
	g.I(asm.VPACKUSDW, a, a, b)
	g.I(asm.VPERMQ, a, a, asm.Imm(inOrder))
	g.I(asm.VMOVUPS, line, a)
	g.I(asm.VPSRLD, low, low, asm.Imm(16))
	g.I(asm.VPSRLD, high, high, asm.Imm(16))
	g.I(asm.VPACKUSDW, low, low, high)
	g.I(asm.VPERMQ, low, low, asm.Imm(inOrder))
	g.I(asm.VMOVUPS, line.Off(32), low)
}
