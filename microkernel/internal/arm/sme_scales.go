package arm

import (
	"sandwich/microkernel/internal/a64"
	"sandwich/microkernel/qtype"
)

// scales loads the scale of vector v for the span at k0, and where weights have one their offset.
func (e *smeInt8) scales(v, k0 int) {
	sub := func(load *a64.Op, z a64.V, n int) {
		e.inSubBlock(qtype.PanelWidth*n + e.lanes*v)
		e.I(load, z, smeAll, smeTmp)
	}
	times := func(z, n a64.V, convert *a64.Op) {
		e.I(convert, n, smeAll, n)
		e.I(a64.ZFMUL, z, z, n)
	}
	if e.Subs == qtype.FloatSubs {
		sub(a64.LD1B, smeScale, k0/e.Span())
		e.I(a64.ZLSLS, smeScale, smeScale, a64.Imm(qtype.FloatSubShift))
	} else {
		e.blockScale(smeScale, v, 0)
	}
	if e.Unit != 0 {
		e.I(a64.ZFMUL, smeScale, smeScale, smeUnit)
	}
	if e.Affine() {
		e.blockScale(smeOffset, v, 1)
	}
	switch e.Subs {
	case qtype.PairSubs:
		sub(a64.LD1B, smeT, 0)
		times(smeScale, smeT, a64.ZUCVTF)
		sub(a64.LD1B, smeT, 1)
		times(smeOffset, smeT, a64.ZUCVTF)
	case qtype.NibbleSubs:
		sub(a64.LD1B, smeT, k0/16)
		e.I(a64.ZLSLS, smeU, smeT, a64.Imm(28))
		e.I(a64.ZLSRS, smeU, smeU, a64.Imm(28))
		times(smeScale, smeU, a64.ZUCVTF)
		e.I(a64.ZLSRS, smeT, smeT, a64.Imm(4))
		times(smeOffset, smeT, a64.ZUCVTF)
	case qtype.SignedSubs:
		sub(a64.LD1SB, smeT, k0/e.Span())
		times(smeScale, smeT, a64.ZSCVTF)
	case qtype.OddSubs, qtype.ParitySubs:
		e.oddSub(v, k0)
		times(smeScale, smeT, a64.ZUCVTF)
	}
}

// blockScale loads half n of the head of the block, for vector v, as float32.
func (e *smeInt8) blockScale(z a64.V, v, n int) {
	e.inHead(2 * (qtype.PanelWidth*n + e.lanes*v))
	e.I(a64.LD1H, z, smeAll, smeTmp)
	if e.ScaleRaw.Float == qtype.Brain {
		e.I(a64.ZLSLS, z, z, a64.Imm(16))
	} else {
		e.I(a64.ZFCVT, z, smeAll, z)
	}
}

// oddSub loads the odd scale of the span at k0, of vector v, as integers into smeT. It overwrites
// smeU.
func (e *smeInt8) oddSub(v, k0 int) {
	and := func(bytes int) {
		e.I(a64.ZDUPB, smeU, a64.Imm(int8(uint8(bytes))))
		e.I(a64.ZAND, smeT, smeT, smeU)
	}
	close := func(n int) {
		e.I(a64.ZLSRS, smeU, smeT, a64.Imm(n))
		e.I(a64.ZORR, smeT, smeT, smeU)
	}
	if e.Subs == qtype.ParitySubs { // s/2 in bits 1, 3, 5 and 7 of byte 3; they close ranks
		e.word(smeT, v, 0, 1)
		e.I(a64.ZLSRS, smeT, smeT, a64.Imm(24))
		and(qtype.ParityBits >> 24)
		close(1)
		and(0x66)
		close(2)
	} else { // s/2 in the low or high four bits
		e.inSubBlock(e.lanes * v)
		e.I(a64.LD1B, smeT, smeAll, smeTmp)
		if k0 == 0 {
			e.I(a64.ZLSLS, smeT, smeT, a64.Imm(1))
		} else {
			e.I(a64.ZLSRS, smeT, smeT, a64.Imm(3))
		}
	}
	and(30)
	e.I(a64.ZDUPB, smeU, a64.Imm(1))
	e.I(a64.ZLSRS, smeU, smeU, a64.Imm(24))
	e.I(a64.ZORR, smeT, smeT, smeU)
}

// smeMade is the words of the second plane, where they are made for each sub-block (Desc.Made); in
// use before the products are scaled.
var smeMade = smeD[2]

// parityByte is the upper byte of qtype.ParityBits, as ZDUPB takes it.
const parityByte = a64.Imm(qtype.ParityBits>>24 - 256)

// make makes them for vector v, for the sub-block at hand.
func (e *smeInt8) make(v int) {
	z, x, y := smeMade, smeX[0], smeX[1]
	if e.Subs != qtype.ParitySubs { // a byte for four k is each byte of its word
		at, _ := e.Place(0, 1)
		e.inSubBlock(at + e.lanes*v)
		e.I(a64.LD1B, z, smeAll, smeTmp)
		for _, n := range []int{8, 16} {
			e.I(a64.ZLSLS, x, z, a64.Imm(n))
			e.I(a64.ZORR, z, z, x)
		}
		return
	}
	// The sign that is not stored is the parity of its seven neighbours: of two bits in each byte.
	e.word(z, v, 0, 1)
	places := func() {
		e.I(a64.ZDUPB, y, parityByte)
		e.I(a64.ZLSLS, y, y, a64.Imm(24))
	}
	places()
	e.I(a64.ZAND, x, z, y)
	e.I(a64.ZEOR, z, z, x)
	e.I(a64.ZLSRS, x, z, a64.Imm(16))
	e.I(a64.ZEOR, x, x, z)
	for _, n := range []int{8, 1} {
		e.I(a64.ZLSRS, y, x, a64.Imm(n))
		e.I(a64.ZEOR, x, x, y)
	}
	e.I(a64.ZLSLS, x, x, a64.Imm(25))
	places()
	e.I(a64.ZAND, x, x, y)
	e.I(a64.ZORR, z, z, x)
}
