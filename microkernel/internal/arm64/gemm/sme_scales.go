package gemm

import (
	"sandwich/microkernel/internal/arm64/asm"
	"sandwich/microkernel/qtype"
)

// scales loads the scale of vector v for the span at k0 and, for affine types, the offset.
func (e *smeInt8) scales(v, k0 int) {
	sub := func(load *asm.Op, z asm.V, n int) { e.sub(load, z, v, n) }
	times := func(z, n asm.V, convert *asm.Op) {
		e.I(convert, n, smeAll, n)
		e.I(asm.ZFMUL, z, z, n)
	}
	if e.Subs == qtype.FloatSubs {
		sub(asm.LD1B, smeScale, k0/e.Span())
		e.I(asm.ZLSLS, smeScale, smeScale, asm.Imm(qtype.FloatSubShift))
	} else {
		e.blockScale(smeScale, v, 0)
	}
	if e.Unit != 0 {
		e.I(asm.ZFMUL, smeScale, smeScale, smeUnit)
	}
	if e.Affine() {
		e.blockScale(smeOffset, v, 1)
	}
	switch e.Subs {
	case qtype.PairSubs:
		sub(asm.LD1B, smeT, 0)
		times(smeScale, smeT, asm.ZUCVTF)
		sub(asm.LD1B, smeT, 1)
		times(smeOffset, smeT, asm.ZUCVTF)
	case qtype.NibbleSubs:
		sub(asm.LD1B, smeT, k0/16)
		e.I(asm.ZLSLS, smeU, smeT, asm.Imm(28))
		e.I(asm.ZLSRS, smeU, smeU, asm.Imm(28))
		times(smeScale, smeU, asm.ZUCVTF)
		e.I(asm.ZLSRS, smeT, smeT, asm.Imm(4))
		times(smeOffset, smeT, asm.ZUCVTF)
	case qtype.SignedSubs:
		sub(asm.LD1SB, smeT, k0/e.Span())
		times(smeScale, smeT, asm.ZSCVTF)
	case qtype.OddSubs, qtype.ParitySubs:
		e.oddSub(v, k0)
		times(smeScale, smeT, asm.ZUCVTF)
	}
}

// sub loads the bytes of scales number n of the sub-block of vector v as 32-bit integers.
func (e *smeInt8) sub(load *asm.Op, z asm.V, v, n int) {
	e.inSubBlock(qtype.PanelWidth*n + e.lanes*v)
	e.I(load, z, smeAll, smeTmp)
}

// integerScale loads the integer scale of the span at k0, with lanes for all columns, into smeT. It
// overwrites smeU.
func (e *smeInt8) integerScale(k0 int) {
	switch e.Subs {
	case qtype.PairSubs:
		e.sub(asm.LD1B, smeT, 0, 0)
	case qtype.NibbleSubs:
		e.sub(asm.LD1B, smeT, 0, k0/16)
		e.I(asm.ZLSLS, smeT, smeT, asm.Imm(28))
		e.I(asm.ZLSRS, smeT, smeT, asm.Imm(28))
	case qtype.SignedSubs:
		e.sub(asm.LD1SB, smeT, 0, k0/e.Span())
	default:
		e.oddSub(0, k0)
	}
}

// blockScale loads scale n of the head of the block of vector v as float32.
func (e *smeInt8) blockScale(z asm.V, v, n int) {
	e.inHead(2 * (qtype.PanelWidth*n + e.lanes*v))
	e.I(asm.LD1H, z, smeAll, smeTmp)
	if e.ScaleRaw.Float == qtype.Brain {
		e.I(asm.ZLSLS, z, z, asm.Imm(16))
	} else {
		e.I(asm.ZFCVT, z, smeAll, z)
	}
}

// oddSub loads the odd scale of the span at k0 of vector v as integers into smeT. It overwrites
// smeU.
func (e *smeInt8) oddSub(v, k0 int) {
	and := func(bytes int) {
		e.I(asm.ZDUPB, smeU, asm.Imm(int8(uint8(bytes))))
		e.I(asm.ZAND, smeT, smeT, smeU)
	}
	close := func(n int) {
		e.I(asm.ZLSRS, smeU, smeT, asm.Imm(n))
		e.I(asm.ZORR, smeT, smeT, smeU)
	}
	if e.Subs == qtype.ParitySubs { // s/2 in bits 1, 3, 5 and 7 of byte 3; shifts make them adjacent
		e.word(smeT, v, 0, 1)
		e.I(asm.ZLSRS, smeT, smeT, asm.Imm(24))
		and(qtype.ParityBits >> 24)
		close(1)
		and(0x66)
		close(2)
	} else { // s/2 in the low or high four bits
		e.inSubBlock(e.lanes * v)
		e.I(asm.LD1B, smeT, smeAll, smeTmp)
		if k0 == 0 {
			e.I(asm.ZLSLS, smeT, smeT, asm.Imm(1))
		} else {
			e.I(asm.ZLSRS, smeT, smeT, asm.Imm(3))
		}
	}
	and(30)
	e.I(asm.ZDUPB, smeU, asm.Imm(1))
	e.I(asm.ZLSRS, smeU, smeU, asm.Imm(24))
	e.I(asm.ZORR, smeT, smeT, smeU)
}

// smeMade holds the words of the second plane if they are computed for each sub-block (Desc.Made).
// It is in use before the products are scaled.
var smeMade = smeD[2]

// parityByte is the upper byte of qtype.ParityBits, as ZDUPB takes it.
const parityByte = asm.Imm(qtype.ParityBits>>24 - 256)

// make computes these words for vector v of the current sub-block.
func (e *smeInt8) make(v int) {
	z, x, y := smeMade, smeX[0], smeX[1]
	if e.Subs != qtype.ParitySubs { // a byte for four k is each byte of its word
		at, _ := e.Place(0, 1)
		e.inSubBlock(at + e.lanes*v)
		e.I(asm.LD1B, z, smeAll, smeTmp)
		for _, n := range []int{8, 16} {
			e.I(asm.ZLSLS, x, z, asm.Imm(n))
			e.I(asm.ZORR, z, z, x)
		}
		return
	}
	// The sign that is not stored is the parity of the seven others: of two bits in each byte.
	e.word(z, v, 0, 1)
	places := func() {
		e.I(asm.ZDUPB, y, parityByte)
		e.I(asm.ZLSLS, y, y, asm.Imm(24))
	}
	places()
	e.I(asm.ZAND, x, z, y)
	e.I(asm.ZEOR, z, z, x)
	e.I(asm.ZLSRS, x, z, asm.Imm(16))
	e.I(asm.ZEOR, x, x, z)
	for _, n := range []int{8, 1} {
		e.I(asm.ZLSRS, y, x, asm.Imm(n))
		e.I(asm.ZEOR, x, x, y)
	}
	e.I(asm.ZLSLS, x, x, asm.Imm(25))
	places()
	e.I(asm.ZAND, x, x, y)
	e.I(asm.ZORR, z, z, x)
}
