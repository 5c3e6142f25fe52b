package gemm

import (
	"math"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/qtype"
)

// loadBlockScale loads scale n of the block of vector j into v as float32, multiplied by the unit
// of scales if it is the first.
func (t subBlocks) loadBlockScale(v asm.Vec, j, n int) {
	if t.ScaleRaw.Float == qtype.Brain {
		t.I(asm.VPMOVZXWD, v, t.blockScale(j, n))
		t.I(asm.VPSLLD, v, v, asm.Imm(16))
	} else {
		t.I(asm.VCVTPH2PS, v, t.blockScale(j, n))
	}
	if n == 0 {
		t.timesUnit(v)
	}
}

// timesUnit multiplies v by the unit of scales, unless that is 1.
func (t subBlocks) timesUnit(v asm.Vec) {
	if t.Unit != 0 {
		t.I(asm.VMULPS, v, v, t.splat(math.Float32bits(t.Unit)))
	}
}

// loadFloat loads the scale of the span at k of vector j into v, for FloatSubs.
func (t subBlocks) loadFloat(v asm.Vec, j, k int) {
	t.I(asm.VPMOVZXBD, v, t.sub(j, k/t.Span()))
	t.I(asm.VPSLLD, v, v, asm.Imm(qtype.FloatSubShift))
	t.timesUnit(v)
}

// loadSub loads the scale of the span at k of vector j into w as integers, for the kinds without
// an offset. It overwrites x.
func (t subBlocks) loadSub(w, x asm.Vec, j, k int) {
	switch t.Subs {
	case qtype.SignedSubs:
		t.I(asm.VPMOVSXBD, w, t.sub(j, k/t.Span()))
		return
	case qtype.OddSubs: // s/2 in the low or high four bits
		t.I(asm.VPMOVZXBD, w, t.sub(j, 0))
		if k == 0 {
			t.I(asm.VPSLLD, w, w, asm.Imm(1))
		} else {
			t.I(asm.VPSRLD, w, w, asm.Imm(3))
		}
		t.and(w, w, 30)
	case qtype.ParitySubs: // s/2 in bits 1, 3, 5 and 7 of byte 3; shifts make them adjacent
		at, _ := t.Place(0, 1)
		t.shiftedWord(w, t.b(j, t.subBlock()+at, w.Bytes()), -24)
		t.and(w, w, qtype.ParityBits>>24)
		t.I(asm.VPSRLD, x, w, asm.Imm(1))
		t.or(w, x)
		t.and(w, w, 0x66)
		t.I(asm.VPSRLD, x, w, asm.Imm(2))
		t.or(w, x)
		t.and(w, w, 30)
	}
	t.orBits(w, 1)
}

// make computes the words of the last plane of the current sub-block of vector j, in slot i. It
// overwrites x and y.
func (t subBlocks) make(i, j int, x, y asm.Vec) {
	at, _ := t.Place(0, 1)
	v := t.made[i]
	if t.Subs != qtype.ParitySubs { // a byte for four k is each byte of its word
		t.I(asm.VPMOVZXBD, v, t.b(j, t.subBlock()+at, v.Bytes()/4))
		words := make([]uint32, v.Bytes()/4)
		for i := range words {
			words[i] = uint32(i%4*4) * 0x01010101
		}
		t.I(asm.VPSHUFB, v, v, t.ConstU32s(words...))
		return
	}
	// The sign that is not stored is the parity of the seven others: of two bits in each byte.
	t.I(asm.VMOVUPS, v, t.b(j, t.subBlock()+at, v.Bytes()))
	t.and(v, v, qtype.SignBits)
	t.I(asm.VPSRLD, x, v, asm.Imm(16))
	t.xor(x, v)
	for _, n := range []int{8, 1} {
		t.I(asm.VPSRLD, y, x, asm.Imm(n))
		t.xor(x, y)
	}
	t.and(x, x, 0x55)
	t.I(asm.VPSLLD, x, x, asm.Imm(25))
	t.or(v, x)
}
