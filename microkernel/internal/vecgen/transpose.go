package vecgen

import "sandwich/microkernel/internal/amd64/asm"

// Transpose names how rows of weights become the columns of a panel.
type Transpose uint8

// The transposes, of sixteen rows that lie TransposeStride bytes apart: P panel, rows; N words of
// 32 bits of a row, by four. A line of the panel has one number of each row.
const (
	Words  Transpose = iota // numbers are words, or pairs that stay together: lines of 64 bytes
	Halves                  // numbers are halves of words: lines of 32 bytes
	Transposes
)

// TransposeStride is no power of two, so that the rows' lines lie in sets of their own in a cache.
const TransposeStride = 1024 + 64

// quadWords is how many words of a row one step takes, a register's lane.
const quadWords = 4

// GenerateTranspose returns the code of a transpose for CPUs with AVX2.
func GenerateTranspose(t Transpose) ([]byte, error) {
	g := newGen(asm.AVX2)
	g.pointers(p0, p1)
	g.Mov(rows, argN(0))
	g.overRows(rows, func() {
		const low, high = 8, 12 // four registers each: columns 0 to 7 and 8 to 15 of four lines
		g.transposeEight(low, 0)
		g.transposeEight(high, 8*TransposeStride)
		for i := range quadWords {
			line := asm.At(p0, i*4*group)
			if t == Halves {
				g.parted(line, asm.Y(low+i), asm.Y(high+i))
				continue
			}
			g.I(asm.VMOVUPS, line, asm.Y(low+i))
			g.I(asm.VMOVUPS, line.Off(32), asm.Y(high+i))
		}
		g.Add(p1, asm.Imm32(4*quadWords))
		g.Add(p0, asm.Imm32(4*quadWords*group))
	})
	return g.finish()
}

// transposeEight brings four words of eight rows, the first of them `at` bytes behind p1, into four
// registers from `to` on: one word of each row in each. Registers 0 to 7 are clobbered.
func (g *gen) transposeEight(to, at int) {
	const x, t = 0, 4
	for i := range 4 {
		row := asm.At(p1, at+i*TransposeStride)
		g.I(asm.VMOVUPS, asm.X(x+i), row)
		g.I(asm.VINSERTF128, asm.Y(x+i), asm.Y(x+i), row.Off(4*TransposeStride), asm.Imm(1))
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

// parted writes a line of the lower halves of sixteen words, and behind it one of the upper halves.
func (g *gen) parted(line asm.Mem, low, high asm.Vec) {
	const inOrder = 0xD8 // the quarters 0, 2, 1, 3: packing works on each lane alone
	const lower = 0xFFFF
	a, b := asm.Y(0), asm.Y(1)
	g.I(asm.VPAND, a, low, g.splat(lower))
	g.I(asm.VPAND, b, high, g.splat(lower))
	g.I(asm.VPACKUSDW, a, a, b)
	g.I(asm.VPERMQ, a, a, asm.Imm(inOrder))
	g.I(asm.VMOVUPS, line, a)
	g.I(asm.VPSRLD, low, low, asm.Imm(16))
	g.I(asm.VPSRLD, high, high, asm.Imm(16))
	g.I(asm.VPACKUSDW, low, low, high)
	g.I(asm.VPERMQ, low, low, asm.Imm(inOrder))
	g.I(asm.VMOVUPS, line.Off(32), low)
}
