package x86

import (
	"sandwich/microkernel/internal/asm"
	"sandwich/microkernel/qtype"
)

// turns walks the blocks of quantized panels. In a block of one turn the panel pointers stand at
// its head; in one of several they stand at the present turn, and a register says how far behind
// them the head is.
type turns struct {
	*emitter
	*qtype.Desc
	head, tmp asm.Reg   // K types only
	atHead    func()    // K types only: called at the head of each block; or nil
	made      []asm.Vec // words of the last plane, where they are made for each turn; nil where memory has them
}

func newTurns(e *emitter) turns {
	t := turns{emitter: e, Desc: e.s.B.Desc()}
	if t.Turns() > 1 {
		t.head = e.pointer()
		if e.s.NR > qtype.PanelWidth {
			t.tmp = e.pointer()
		}
	}
	return t
}

// blocks runs body once for each turn of the blocks that loop, which calls its argument for each of
// them, goes through, and moves the panel pointers on.
func (t turns) blocks(loop func(func()), body func()) {
	loop(func() {
		n := t.Turns()
		if n == 1 {
			body()
			t.advanceB(t.HeadBytes() + t.TurnBytes())
			return
		}
		t.advanceB(t.HeadBytes())
		t.MovImm(t.head, uint64(-int64(t.HeadBytes())))
		if t.atHead != nil {
			t.atHead()
		}
		top := t.Here()
		body()
		t.advanceB(t.TurnBytes())
		t.Sub(t.head, asm.Imm32(t.TurnBytes()))
		t.Cmp(t.head, asm.Imm32(-t.HeadBytes()-n*t.TurnBytes()))
		t.Jcc(asm.NotZero, top)
	})
}

// half is half n of the head of the block, for vector j.
func (t turns) half(j, n int) asm.Mem {
	part := t.reg(0).Bytes() / 2
	disp := 2*qtype.PanelWidth*n + j%t.perPanel()*part
	if t.Turns() == 1 {
		return t.b(j, 2*qtype.PanelWidth*n, part)
	}
	p := j / t.perPanel()
	base := t.bBase[p/pointersEach]
	if p %= pointersEach; p != 0 {
		t.Lea(t.tmp, asm.AtIndex(base, rBS, p, 0))
		base = t.tmp
	}
	return asm.AtIndex(base, t.head, 1, disp)
}

// turn is where the turn begins, from the panel pointer.
func (t turns) turn() int {
	if t.Turns() == 1 {
		return t.HeadBytes()
	}
	return 0
}

// sub is the bytes of scales number n of the turn, for vector j.
func (t turns) sub(j, n int) asm.Mem {
	return t.b(j, t.turn()+qtype.PanelWidth*n, t.reg(0).Bytes()/4)
}

// piece finds bits of element k of the turn: the word of the plane, and the bit in it. Slot i has
// the words that were made for vector j.
func (t turns) piece(i, j, k, plane int) (word asm.Operand, bit int) {
	at, bit := t.Place(k/4, plane)
	if bit += 8 * (k % 4); plane > 0 && t.made != nil {
		return t.made[i], bit
	}
	return t.b(j, t.turn()+at, t.reg(0).Bytes()), bit
}

// linesOfTurn is the bytes of a turn that are prefetched while it is used: with the head of the
// block, where that is one turn.
func (t turns) linesOfTurn() int {
	if t.Turns() == 1 {
		return t.HeadBytes() + t.TurnBytes()
	}
	return t.TurnBytes()
}
