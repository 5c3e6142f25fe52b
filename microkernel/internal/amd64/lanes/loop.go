package lanes

import (
	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/arith"
)

// SetTail prepares the masks for a partial group of Left elements (1 to 15). It overwrites Left and
// the mask pointer.
func (g *Gen) SetTail() {
	g.Lea(maskPtr, g.masks)
	if g.Wide {
		g.Mov32(Left, asm.AtIndex(maskPtr, Left, 4, 0))
		g.KMovW(TailMask, Left)
		return
	}
	g.Shl(Left, 2)
	g.Add(maskPtr, asm.Imm32(64))
	g.Sub(maskPtr, Left)
}

// OverGroups runs body over the groups of n elements, with Index counting elements: whole groups in
// a loop, then the partial one with tail set. The body is emitted for each part of a group. n is
// kept; Index, Left and the other registers with a fixed role are overwritten.
func (g *Gen) OverGroups(n asm.Reg, body func(h int, tail bool)) {
	g.Xor(Index, Index)
	g.OverRest(n, body)
}

// OverRest is OverGroups starting at the current value of Index.
func (g *Gen) OverRest(n asm.Reg, body func(h int, tail bool)) {
	rest, done := g.NewLabel(), g.NewLabel()
	g.Mov(full, n)
	g.Sub(full, Index)
	g.And(full, asm.Imm32(-arith.Lanes))
	g.Add(full, Index)
	g.Cmp(Index, full)
	g.Jcc(asm.GreaterEqual, rest)
	g.Align(16)
	loop := g.Here()
	for h := range g.Parts {
		body(h, false)
	}
	g.Add(Index, asm.Imm32(arith.Lanes))
	g.Cmp(Index, full)
	g.Jcc(asm.Less, loop)
	g.Bind(rest)
	g.Mov(Left, n)
	g.Sub(Left, Index)
	g.Jcc(asm.LessOrEqual, done)
	g.SetTail()
	for h := range g.Parts {
		body(h, true)
	}
	g.Bind(done)
}

// OverEights runs body for each whole step of eight elements and single for each remaining element,
// with Index counting elements.
func (g *Gen) OverEights(n asm.Reg, body, single func()) {
	rest, last, done := g.NewLabel(), g.NewLabel(), g.NewLabel()
	g.Xor(Index, Index)
	g.Mov(full, n)
	g.And(full, asm.Imm32(-8))
	g.Jcc(asm.Zero, rest)
	g.Align(16)
	loop := g.Here()
	body()
	g.Add(Index, asm.Imm32(8))
	g.Cmp(Index, full)
	g.Jcc(asm.Less, loop)
	g.Bind(rest)
	g.Bind(last)
	g.Cmp(Index, n)
	g.Jcc(asm.GreaterEqual, done)
	single()
	g.Add(Index, asm.Imm32(1))
	g.Jmp(last)
	g.Bind(done)
}

// OverRows runs body for each of the given number of rows, or not at all if it is not positive.
func (g *Gen) OverRows(rows asm.Reg, body func()) {
	done := g.NewLabel()
	g.Test(rows, rows)
	g.Jcc(asm.LessOrEqual, done)
	loop := g.NewLabel()
	g.Bind(loop)
	body()
	g.Dec(rows)
	g.Jcc(asm.NotZero, loop)
	g.Bind(done)
}
