package gemm

import (
	"sandwich/microkernel/internal/arm64/asm"
	"sandwich/microkernel/qtype"
)

// subBlocks walks over the blocks of quantized panels and unpacks their numbers. In a block of one
// sub-block the panel pointers are at its head. In a block of several they are at the current
// sub-block, and a register holds the distance back to the head.
type subBlocks struct {
	*tile
	*qtype.Desc
	head, left asm.X  // K types only
	mask       asm.V  // of the last bit field of a number, in every byte; none for whole bytes
	high       asm.V  // the bit field of the second plane
	table      asm.V  // of levels
	atTail     func() // K types only: called after each block; or nil
	made       asm.V  // the words of the second plane, where they are made for each sub-block (Desc.Made)
}

func newSubBlocks(e *tile) subBlocks {
	t := subBlocks{tile: e, Desc: e.s.B.Desc()}
	if t.SubBlocks() > 1 {
		t.head, t.left = e.pointer(), e.pointer()
	}
	if t.Bits() < 8 {
		t.mask = e.vec()
	}
	if len(t.Fields) > 1 {
		t.high = e.vec()
	}
	if t.Codebook != nil {
		t.table = e.vec()
	}
	if t.Made() {
		t.made = e.vec()
	}
	return t
}

// constants loads the constants of unpacking.
func (t subBlocks) constants() {
	if t.Bits() < 8 {
		t.I(asm.MOVI, t.mask, asm.Imm((1<<t.Fields[len(t.Fields)-1].Bits-1)<<t.Shift))
	}
	if t.Codebook != nil {
		var levels [16]byte
		for i, l := range t.Codebook {
			levels[i] = byte(l)
		}
		t.ConstQ(t.table, levels)
	}
}

// blocks runs body for each sub-block of the number of blocks in the argument and advances the
// panel pointers.
func (t subBlocks) blocks(count uintptr, body func()) {
	t.loop(count, func() {
		n := t.SubBlocks()
		if n == 1 {
			body()
			t.advance(t.bBase, t.HeadBytes()+t.SubBlockBytes())
			return
		}
		t.advance(t.bBase, t.HeadBytes())
		t.MovImm(t.head, -t.HeadBytes())
		t.MovImm(t.left, n)
		t.Loop(t.left, func() {
			t.Times(float64(n), func() {
				body()
				t.advance(t.bBase, t.SubBlockBytes())
				t.AddImm(t.head, t.head, -t.SubBlockBytes())
			})
		})
		if t.atTail != nil {
			t.atTail()
		}
	})
}

// blockScale loads scale n of the head of the block of vector j as float32, without the unit of
// scales.
func (t subBlocks) blockScale(v asm.V, j, n int) {
	p := t.panelOf(j)
	if t.SubBlocks() > 1 {
		t.I(asm.ADD, nTmp, p, t.head)
		p = nTmp
	}
	t.I(asm.LDRD, v, p, asm.Imm(2*qtype.PanelWidth*n+8*(j%perPanel)))
	if t.ScaleRaw.Float == qtype.Brain {
		t.I(asm.SHLL4H, v, v)
	} else {
		t.I(asm.FCVTL, v, v)
	}
}

// sub loads the bytes of scales number n of the sub-block, for vector j, as 32-bit integers.
func (t subBlocks) sub(v asm.V, j, n int) {
	t.I(asm.LDRS, v, t.panelOf(j), asm.Imm(qtype.PanelWidth*n+4*(j%perPanel)))
	bytes, words := asm.USHLL8B, asm.USHLL4H
	if t.Subs == qtype.SignedSubs {
		bytes, words = asm.SSHLL8B, asm.SSHLL4H
	}
	t.I(bytes, v, v, asm.Imm(0))
	t.I(words, v, v, asm.Imm(0))
}

// field returns the offset of the words of vector j with bits of group g (four k) of the sub-block
// in its panel, and the position of the bits in each byte.
func (t subBlocks) field(j, g, plane int) (at, bit int) {
	at, bit = t.Place(g, plane)
	if t.SubBlocks() == 1 {
		at += t.HeadBytes()
	}
	return at + 16*(j%perPanel), bit
}

// numbers loads group g of the sub-block of vector j into v: four unsigned bytes, or codebook
// values, for each of four columns.
func (t subBlocks) numbers(v asm.V, j, g int) {
	last := len(t.Fields) - 1
	t.bytesOf(v, j, g, 0, last == 0)
	if last == 1 {
		// What lies above the first bit field in a byte is overwritten, so that only the last bit
		// field needs a mask.
		t.bytesOf(t.high, j, g, 1, t.Bits() < 8)
		t.I(asm.SLI16B, v, t.high, asm.Imm(t.Fields[0].Bits))
	}
	if t.Codebook != nil {
		t.I(asm.TBL, v, t.table, v)
	}
}

// bytesOf moves a bit field of the numbers to the lowest bits of the bytes, or to Shift.
func (t subBlocks) bytesOf(v asm.V, j, g, plane int, masked bool) {
	at, bit := t.field(j, g, plane)
	from := v
	if plane > 0 && t.Made() {
		from = t.made
	} else {
		t.I(asm.LDRQ, v, t.panelOf(j), asm.Imm(at))
	}
	switch down := bit - t.Shift; {
	case down > 0:
		t.I(asm.USHR16B, v, from, asm.Imm(down))
	case down < 0:
		t.I(asm.SHL16B, v, from, asm.Imm(-down))
	case from != v:
		t.Move(v, from)
	}
	if masked && (bit+t.Fields[plane].Bits < 8 || t.Shift > 0) {
		t.I(asm.ANDV, v, v, t.mask)
	}
}
