package gemm

import (
	"sandwich/microkernel/internal/arm64/asm"
	"sandwich/microkernel/qtype"
)

// scales loads the scale of vector j for the span of element k and, for affine types, the offset
// to add. It overwrites w and x.
func (t subBlocks) scales(scale, offset, w, x asm.V, j, k int) {
	if t.Subs == qtype.FloatSubs {
		t.sub(scale, j, k/t.Span())
		t.I(asm.SHL4S, scale, scale, asm.Imm(qtype.FloatSubShift))
		t.times1(scale, w)
		return
	}
	t.blockScale(scale, j, 0)
	t.times1(scale, w)
	switch t.Subs {
	case qtype.PairSubs:
		t.sub(w, j, 0)
		t.times(scale, w)
		t.sub(w, j, 1)
	case qtype.NibbleSubs:
		t.sub(w, j, k/16)
		t.I(asm.SHL4S, x, w, asm.Imm(28))
		t.I(asm.USHR4S, x, x, asm.Imm(28))
		t.times(scale, x)
		t.I(asm.USHR4S, w, w, asm.Imm(4))
	case qtype.SignedSubs:
		t.sub(w, j, k/t.Span())
		t.I(asm.SCVTF, w, w)
		t.I(asm.FMUL, scale, scale, w)
	case qtype.OddSubs, qtype.ParitySubs:
		t.oddSub(w, x, j, k)
		t.times(scale, w)
	}
	if !t.Affine() {
		return
	}
	t.blockScale(offset, j, 1)
	if t.Subs != qtype.NoSubs {
		t.times(offset, w)
		t.I(asm.FNEG, offset, offset) // the K types take their offset off
	}
}

// times multiplies v by the unsigned integers in w.
func (t subBlocks) times(v, w asm.V) {
	t.I(asm.UCVTF, w, w)
	t.I(asm.FMUL, v, v, w)
}

// times1 multiplies v by the unit of scales. It overwrites x.
func (t subBlocks) times1(v, x asm.V) {
	if t.Unit != 0 {
		t.SplatF(x, t.Unit)
		t.I(asm.FMUL, v, v, x)
	}
}

// oddSub loads the odd scale of the span at k of vector j as integers into w. It overwrites x.
func (t subBlocks) oddSub(w, x asm.V, j, k int) {
	and := func(bytes int) {
		t.I(asm.MOVI, x, asm.Imm(bytes))
		t.I(asm.ANDV, w, w, x)
	}
	close := func(n int) {
		t.I(asm.USHR4S, x, w, asm.Imm(n))
		t.I(asm.ORRV, w, w, x)
	}
	switch {
	case t.Subs == qtype.ParitySubs: // s/2 in bits 1, 3, 5 and 7 of byte 3; shifts make them adjacent
		at, _ := t.field(j, 0, 1)
		t.I(asm.LDRQ, w, t.panelOf(j), asm.Imm(at))
		t.I(asm.USHR4S, w, w, asm.Imm(24))
		and(qtype.ParityBits >> 24)
		close(1)
		and(0x66)
		close(2)
	case k == 0: // s/2 in the low or high four bits
		t.sub(w, j, 0)
		t.I(asm.SHL4S, w, w, asm.Imm(1))
	default:
		t.sub(w, j, 0)
		t.I(asm.USHR4S, w, w, asm.Imm(3))
	}
	and(30)
	t.I(asm.MOVI, x, asm.Imm(1))
	t.I(asm.USHR4S, x, x, asm.Imm(24))
	t.I(asm.ORRV, w, w, x)
}

// make computes the words of the second plane of the current sub-block of vector j. It overwrites
// x and y.
func (t subBlocks) make(j int, x, y asm.V) {
	v := t.made
	at, _ := t.Place(0, 1)
	if t.Subs != qtype.ParitySubs { // a byte for four k is each byte of its word
		t.I(asm.LDRS, v, t.panelOf(j), asm.Imm(at+4*(j%perPanel)))
		t.I(asm.ZIP1B, v, v, v)
		t.I(asm.ZIP1H, v, v, v)
		return
	}
	// The sign that is not stored is the parity of the seven others: of two bits in each byte.
	t.I(asm.LDRQ, v, t.panelOf(j), asm.Imm(at+16*(j%perPanel)))
	t.I(asm.MOVI24, y, asm.Imm(qtype.ParityBits>>24))
	t.I(asm.BICV, v, v, y)
	t.I(asm.USHR4S, x, v, asm.Imm(16))
	t.I(asm.EORV, x, x, v)
	for _, n := range []int{8, 1} {
		t.I(asm.USHR4S, y, x, asm.Imm(n))
		t.I(asm.EORV, x, x, y)
	}
	t.I(asm.SHL4S, x, x, asm.Imm(25))
	t.I(asm.MOVI24, y, asm.Imm(qtype.ParityBits>>24))
	t.I(asm.ANDV, x, x, y)
	t.I(asm.ORRV, v, v, x)
}
