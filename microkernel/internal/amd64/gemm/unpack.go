package gemm

import (
	"math"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// unpackWay is the method by which a stored number becomes a float32 of its exact value.
type unpackWay uint8

const (
	// byMantissa: a number u of b bits in the topmost bits of the mantissa of a float32 whose
	// exponent is b is the float32 2^b + u, without a conversion. One FMA then computes
	// (2^b + u) * scale - (2^b + origin) * scale with exact operands and result: origin is
	// 2^(b-1), so that 2^b + origin has two bits, and scales have at most 18.
	byMantissa unpackWay = iota
	byTable              // at most four bits look up one of sixteen floats; bits above are ignored
	byTables             // five bits look up one of 32
	byConvert            // mask and convert: AVX2, whose lookups take three bits, and numbers too long for a lookup
	byShuffle            // AVX2: they look up a byte, at the top of the word, which is shifted down with its sign
)

func (s spec) unpackWay() unpackWay {
	f := s.B.Desc()
	switch {
	case f.Codebook == nil && !f.Affine():
		return byMantissa
	case s.ISA != kernel.AVX512 && f.Codebook != nil:
		return byShuffle
	case s.ISA != kernel.AVX512 || f.Bits() > 5:
		return byConvert
	case f.Bits() > 4:
		return byTables
	}
	return byTable
}

// unpacker holds the registers that dequantize il vectors side by side.
type unpacker struct {
	subBlocks
	way    unpackWay
	scale  []asm.Vec // per vector
	offset []asm.Vec // per vector; none for levels
	w      []asm.Vec // per vector: the value of the present k
	high   asm.Vec   // the bit field of the second plane
	mask   asm.Vec   // AVX-512: of the first bit field
	mask2  asm.Vec   // AVX-512, byMantissa: of the second bit field
	one    asm.Vec   // AVX-512, byMantissa: 2^b
	table  []asm.Vec
}

func newUnpacker(e *emitter, il int) *unpacker {
	u := &unpacker{subBlocks: newSubBlocks(e), way: e.s.unpackWay()}
	for range il {
		u.scale = append(u.scale, e.vec())
		if u.Codebook == nil {
			u.offset = append(u.offset, e.vec())
		}
		u.w = append(u.w, e.vec())
	}
	two := len(u.Fields) == 2
	if two {
		u.high = e.vec()
	}
	if u.Made() {
		u.made = e.vecs(il)
	}
	switch u.way {
	case byMantissa:
		if e.wide() {
			u.mask, u.one = e.vec(), e.vec()
			if two {
				u.mask2 = e.vec()
			}
		}
	case byTable, byShuffle:
		if u.table = e.vecs(1); two && u.way == byTable {
			u.mask = e.vec()
		}
	case byTables:
		u.table, u.mask = e.vecs(2), e.vec()
	}
	return u
}

// The position of a number in the mantissa, the float 2^b, and the value to subtract before
// scaling.
func (u *unpacker) low() int         { return 23 - u.Bits() }
func (u *unpacker) oneBits() uint32  { return uint32(127+u.Bits()) << 23 }
func (u *unpacker) takeOff() float32 { return -float32(int(1)<<u.Bits() + u.ZeroPoint) }

// fieldMask returns the bits of a bit field in a number.
func (u *unpacker) fieldMask(p int) uint32 { return (1<<u.Fields[p].Bits - 1) << u.Low(p) }

func (u *unpacker) setup() {
	all := func(v asm.Vec, bits uint32) { u.I(asm.VPBROADCASTD, v, u.ConstU32(bits)) }
	switch u.way {
	case byMantissa:
		if u.wide() {
			all(u.mask, u.fieldMask(0)<<u.low())
			all(u.one, u.oneBits())
			if len(u.Fields) == 2 {
				all(u.mask2, u.fieldMask(1)<<u.low())
			}
		}
	case byTable, byTables:
		for i, t := range u.table {
			u.I(asm.VMOVUPS, t, u.ConstU32s(u.floats(16*i)...))
		}
		if len(u.Fields) == 2 {
			all(u.mask, u.fieldMask(0))
		}
	case byShuffle:
		var words [8]uint32
		for i, l := range u.Codebook {
			words[i/4] |= uint32(uint8(l)) << (i % 4 * 8)
			words[4+i/4] |= uint32(uint8(l)) << (i % 4 * 8)
		}
		u.I(asm.VMOVUPS, u.table[0], u.ConstU32s(words[:]...))
	}
}

// floats returns sixteen entries of the table starting at number `from`; tables of fewer bits
// repeat.
func (u *unpacker) floats(from int) []uint32 {
	out := make([]uint32, 16)
	for i := range out {
		n := (from + i) & (1<<u.Bits() - 1)
		v := float32(n)
		if u.Codebook != nil {
			v = float32(u.Codebook[n])
		}
		out[i] = math.Float32bits(v)
	}
	return out
}

// splat returns a constant in all lanes: an embedded broadcast, or a whole vector in the pool.
func (e *emitter) splat(v uint32) asm.Mem {
	if e.wide() {
		return e.ConstU32(v).Bcast()
	}
	return e.ConstU32s(v, v, v, v, v, v, v, v)
}

// scales loads the scale of vector j for the span of element k into slot i, and its offset: for
// affine types the addend or, in the K types, the subtrahend.
func (u *unpacker) scales(i, j, k int) {
	v, w := u.scale[i], u.w[i]
	if u.made != nil && k == 0 {
		u.make(i, j, w, u.high)
	}
	if u.Subs == qtype.FloatSubs {
		u.loadFloat(v, j, k)
		return
	}
	u.loadBlockScale(v, j, 0)
	switch u.Subs {
	case qtype.PairSubs:
		u.I(asm.VPMOVZXBD, w, u.sub(j, 0))
		u.times(v, w)
		u.I(asm.VPMOVZXBD, w, u.sub(j, 1))
		u.loadBlockScale(u.offset[i], j, 1)
		u.times(u.offset[i], w)
	case qtype.NibbleSubs:
		o := u.offset[i]
		u.I(asm.VPMOVZXBD, o, u.sub(j, k/16))
		u.and(w, o, 15)
		u.times(v, w)
		u.I(asm.VPSRLD, w, o, asm.Imm(4))
		u.loadBlockScale(o, j, 1)
		u.times(o, w)
	case qtype.SignedSubs, qtype.OddSubs, qtype.ParitySubs:
		u.loadSub(w, u.high, j, k)
		u.times(v, w)
	}
	switch {
	case u.way == byMantissa:
		u.I(asm.VMULPS, u.offset[i], v, u.splat(math.Float32bits(u.takeOff())))
	case u.Affine() && u.Subs == qtype.NoSubs:
		u.loadBlockScale(u.offset[i], j, 1)
	}
}

// times multiplies v by the integers in w.
func (u *unpacker) times(v, w asm.Vec) {
	u.I(asm.VCVTDQ2PS, w, w)
	u.I(asm.VMULPS, v, v, w)
}

func (e *emitter) and(dst, src asm.Vec, mask uint32) {
	if e.wide() {
		e.I(asm.VPANDD, dst, src, e.splat(mask))
	} else {
		e.I(asm.VPAND, dst, src, e.splat(mask))
	}
}

func (e *emitter) or(dst, src asm.Vec) {
	if e.wide() {
		e.I(asm.VPORD, dst, dst, src)
	} else {
		e.I(asm.VPOR, dst, dst, src)
	}
}

func (e *emitter) orBits(v asm.Vec, bits uint32) {
	if e.wide() {
		e.I(asm.VPORD, v, v, e.splat(bits))
	} else {
		e.I(asm.VPOR, v, v, e.splat(bits))
	}
}

func (e *emitter) xor(dst, src asm.Vec) {
	if e.wide() {
		e.I(asm.VPXORD, dst, dst, src)
	} else {
		e.I(asm.VPXOR, dst, dst, src)
	}
}

// shifted loads a bit field of element k of vector j, in slot i, into v, with the lowest bit of
// numbers at `to`; other bits surround it.
func (u *unpacker) shifted(v asm.Vec, i, j, k, plane, to int) {
	word, bit := u.field(i, j, k, plane)
	u.shiftedWord(v, word, to+u.Low(plane)-bit)
}

// shiftedWord loads 32-bit words from memory or a register into v, shifted left by n bits, or
// right for a negative n.
func (e *emitter) shiftedWord(v asm.Vec, word asm.Operand, n int) {
	op := asm.VPSLLD
	if n < 0 {
		op, n = asm.VPSRLD, -n
	}
	_, loaded := word.(asm.Vec)
	switch {
	case n == 0:
		e.I(asm.VMOVUPS, v, word)
	case e.wide() || loaded:
		e.I(op, v, word, asm.Imm(n))
	default: // AVX2 shifts registers only
		e.I(asm.VMOVUPS, v, word)
		e.I(op, v, v, asm.Imm(n))
	}
}

// value dequantizes element k of the sub-block of vector j into slot i.
func (u *unpacker) value(i, j, k int) {
	w := u.w[i]
	switch u.way {
	case byMantissa:
		u.mantissa(w, i, j, k)
	case byTable, byTables:
		const choose = 0xE4 // mask ? w : high
		u.shifted(w, i, j, k, 0, 0)
		if len(u.Fields) == 2 {
			u.shifted(u.high, i, j, k, 1, 0)
			u.I(asm.VPTERNLOGD, w, u.high, u.mask, asm.Imm(choose))
		}
		if u.way == byTables {
			u.I(asm.VPERMI2PS, w, u.table[0], u.table[1])
		} else {
			u.I(asm.VPERMPS, w, w, u.table[0])
		}
	case byConvert:
		u.masked(w, i, j, k, 0)
		u.I(asm.VCVTDQ2PS, w, w)
	case byShuffle:
		u.masked(w, i, j, k, 24)
		u.I(asm.VPSHUFB, w, u.table[0], w)
		u.I(asm.VPSRAD, w, w, asm.Imm(24))
		u.I(asm.VCVTDQ2PS, w, w)
	}
	switch {
	case u.Codebook != nil:
		u.I(asm.VMULPS, w, w, u.scale[i])
	case u.Affine() && u.Subs != qtype.NoSubs:
		u.I(asm.VFMSUB213PS, w, u.scale[i], u.offset[i])
	default:
		u.I(asm.VFMADD213PS, w, u.scale[i], u.offset[i])
	}
}

// masked loads the number into w, with its lowest bit at `to` and zeros around it.
func (u *unpacker) masked(w asm.Vec, i, j, k, to int) {
	u.shifted(w, i, j, k, 0, to)
	u.and(w, w, u.fieldMask(0)<<to)
	if len(u.Fields) == 2 {
		u.shifted(u.high, i, j, k, 1, to)
		u.and(u.high, u.high, u.fieldMask(1)<<to)
		u.or(w, u.high)
	}
}

// mantissa loads 2^b + u into w.
func (u *unpacker) mantissa(w asm.Vec, i, j, k int) {
	const maskThenOr, orMasked = 0xEA, 0xF8 // (w & mask) | one; w | (high & mask2)
	if !u.wide() {
		u.masked(w, i, j, k, u.low())
		u.I(asm.VPOR, w, w, u.splat(u.oneBits()))
		return
	}
	u.shifted(w, i, j, k, 0, u.low())
	u.I(asm.VPTERNLOGD, w, u.mask, u.one, asm.Imm(maskThenOr))
	if len(u.Fields) == 2 {
		u.shifted(u.high, i, j, k, 1, u.low())
		u.I(asm.VPTERNLOGD, w, u.high, u.mask2, asm.Imm(orMasked))
	}
}
