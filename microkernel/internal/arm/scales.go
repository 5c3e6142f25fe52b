package arm

import (
	"sandwich/microkernel/internal/a64"
	"sandwich/microkernel/qtype"
)

// scales loads the scale of vector j for the span of element k, and where weights have one their
// offset, ready to be added. w and x are overwritten.
func (t subBlocks) scales(scale, offset, w, x a64.V, j, k int) {
	if t.Subs == qtype.FloatSubs {
		t.sub(scale, j, k/t.Span())
		t.I(a64.SHL4S, scale, scale, a64.Imm(qtype.FloatSubShift))
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
		t.I(a64.SHL4S, x, w, a64.Imm(28))
		t.I(a64.USHR4S, x, x, a64.Imm(28))
		t.times(scale, x)
		t.I(a64.USHR4S, w, w, a64.Imm(4))
	case qtype.SignedSubs:
		t.sub(w, j, k/t.Span())
		t.I(a64.SCVTF, w, w)
		t.I(a64.FMUL, scale, scale, w)
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
		t.I(a64.FNEG, offset, offset) // the K types take their offset off
	}
}

// times multiplies v by the unsigned integers in w.
func (t subBlocks) times(v, w a64.V) {
	t.I(a64.UCVTF, w, w)
	t.I(a64.FMUL, v, v, w)
}

// times1 multiplies v by the unit of scales. It overwrites x.
func (t subBlocks) times1(v, x a64.V) {
	if t.Unit != 0 {
		t.SplatF(x, t.Unit)
		t.I(a64.FMUL, v, v, x)
	}
}

// oddSub loads the odd scale of the span at k, of vector j, as integers into w. It overwrites x.
func (t subBlocks) oddSub(w, x a64.V, j, k int) {
	and := func(bytes int) {
		t.I(a64.MOVI, x, a64.Imm(bytes))
		t.I(a64.ANDV, w, w, x)
	}
	close := func(n int) {
		t.I(a64.USHR4S, x, w, a64.Imm(n))
		t.I(a64.ORRV, w, w, x)
	}
	switch {
	case t.Subs == qtype.ParitySubs: // s/2 in bits 1, 3, 5 and 7 of byte 3; they close ranks
		at, _ := t.field(j, 0, 1)
		t.I(a64.LDRQ, w, t.panelOf(j), a64.Imm(at))
		t.I(a64.USHR4S, w, w, a64.Imm(24))
		and(qtype.ParityBits >> 24)
		close(1)
		and(0x66)
		close(2)
	case k == 0: // s/2 in the low or high four bits
		t.sub(w, j, 0)
		t.I(a64.SHL4S, w, w, a64.Imm(1))
	default:
		t.sub(w, j, 0)
		t.I(a64.USHR4S, w, w, a64.Imm(3))
	}
	and(30)
	t.I(a64.MOVI, x, a64.Imm(1))
	t.I(a64.USHR4S, x, x, a64.Imm(24))
	t.I(a64.ORRV, w, w, x)
}

// make makes the words of the second plane for vector j, for the sub-block at hand. It overwrites x
// and y.
func (t subBlocks) make(j int, x, y a64.V) {
	v := t.made
	at, _ := t.Place(0, 1)
	if t.Subs != qtype.ParitySubs { // a byte for four k is each byte of its word
		t.I(a64.LDRS, v, t.panelOf(j), a64.Imm(at+4*(j%perPanel)))
		t.I(a64.ZIP1B, v, v, v)
		t.I(a64.ZIP1H, v, v, v)
		return
	}
	// The sign that is not stored is the parity of its seven neighbours: of two bits in each byte.
	t.I(a64.LDRQ, v, t.panelOf(j), a64.Imm(at+16*(j%perPanel)))
	t.I(a64.MOVI24, y, a64.Imm(qtype.ParityBits>>24))
	t.I(a64.BICV, v, v, y)
	t.I(a64.USHR4S, x, v, a64.Imm(16))
	t.I(a64.EORV, x, x, v)
	for _, n := range []int{8, 1} {
		t.I(a64.USHR4S, y, x, a64.Imm(n))
		t.I(a64.EORV, x, x, y)
	}
	t.I(a64.SHL4S, x, x, a64.Imm(25))
	t.I(a64.MOVI24, y, a64.Imm(qtype.ParityBits>>24))
	t.I(a64.ANDV, x, x, y)
	t.I(a64.ORRV, v, v, x)
}
