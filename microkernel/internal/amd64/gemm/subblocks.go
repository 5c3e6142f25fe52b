package gemm

import (
	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/qtype"
)

// subBlocks walks over the blocks of quantized panels. In a block of one sub-block the panel
// pointers are at its head. In a block of several they are at the current sub-block, and a
// register holds the distance back to the head.
type subBlocks struct {
	*emitter
	*qtype.Desc
	head, tmp asm.Reg   // K types only
	atHead    func()    // K types only: called at the head of each block; or nil
	atTail    func()    // K types only: called after each block; or nil
	made      []asm.Vec // words of the last plane, where they are made for each sub-block; nil where memory has them
	passed    int       // bytes from the panel pointers to the sub-block that operands refer to
}

func newSubBlocks(e *emitter) subBlocks {
	t := subBlocks{emitter: e, Desc: e.s.B.Desc()}
	if t.SubBlocks() > 1 {
		t.head = e.pointer()
		if e.s.NR > qtype.PanelWidth {
			t.tmp = e.pointer()
		}
	}
	return t
}

// blocks runs body for each sub-block of the blocks and advances the panel pointers. loop repeats
// its argument for each block.
func (t subBlocks) blocks(loop func(func()), body func()) {
	loop(func() {
		n := t.SubBlocks()
		if n == 1 {
			body()
			t.advanceB(t.HeadBytes() + t.SubBlockBytes())
			return
		}
		t.advanceB(t.HeadBytes())
		t.MovImm(t.head, uint64(-int64(t.HeadBytes())))
		if t.atHead != nil {
			t.atHead()
		}
		top := t.Here()
		t.Times(float64(n), func() {
			body()
			t.advanceB(t.SubBlockBytes())
			t.Sub(t.head, asm.Imm32(t.SubBlockBytes()))
			t.Cmp(t.head, asm.Imm32(-t.HeadBytes()-n*t.SubBlockBytes()))
		})
		t.Jcc(asm.NotZero, top)
		if t.atTail != nil {
			t.atTail()
		}
	})
}

// blockScale returns scale n at the head of the block, for vector j.
func (t subBlocks) blockScale(j, n int) asm.Mem {
	part := t.reg(0).Bytes() / 2
	disp := 2*qtype.PanelWidth*n + j%t.perPanel()*part
	if t.SubBlocks() == 1 {
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

// subBlock returns the offset of the sub-block from the panel pointer.
func (t subBlocks) subBlock() int {
	if t.SubBlocks() == 1 {
		return t.HeadBytes()
	}
	return t.passed
}

// sub returns the bytes of scales number n of the sub-block, for vector j.
func (t subBlocks) sub(j, n int) asm.Mem {
	return t.b(j, t.subBlock()+qtype.PanelWidth*n, t.reg(0).Bytes()/4)
}

// field returns the operand with the bits of element k of the sub-block, and the position of the
// bits in it. Slot i holds the words that make computed for vector j.
func (t subBlocks) field(i, j, k, plane int) (word asm.Operand, bit int) {
	at, bit := t.Place(k/4, plane)
	if bit += 8 * (k % 4); plane > 0 && t.made != nil {
		return t.made[i], bit
	}
	return t.b(j, t.subBlock()+at, t.reg(0).Bytes()), bit
}

// linesOfSubBlock returns the bytes that are prefetched while a sub-block is used: the sub-block,
// and the head of a block of one sub-block.
func (t subBlocks) linesOfSubBlock() int {
	if t.SubBlocks() == 1 {
		return t.HeadBytes() + t.SubBlockBytes()
	}
	return t.SubBlockBytes()
}
