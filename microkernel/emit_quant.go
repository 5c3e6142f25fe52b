package microkernel

import (
	"math"
	"unsafe"

	"sandwich/microkernel/internal/asm"
)

// dequant is how the unsigned numbers of one 32-bit word become floats. A number u of few bits, standing at bit `low` of
// the mantissa of a float whose exponent makes that bit worth 1, is the float 2^(23-low) + u: one shift, one
// masking and no conversion. One FMA then gives (2^(23-low) + u) * scale - (2^(23-low) + zero) * scale, whose operands
// and result are exact for an 11-bit scale as long as 2^(23-low) + zero has at most 13 significant bits.
type dequant struct {
	low   int     // bit where the number stands after the shift
	mask  uint32  // its bits there
	shift int     // left shift that brings it there; negative: right
	zero  float32 // the stored number that means zero
}

func (d dequant) one() uint32     { return uint32(127+23-d.low) << 23 } // the float 2^(23-low)
func (d dequant) offset() float32 { return -(math.Float32frombits(d.one()) + d.zero) }

// words lists, for k ascending, the pieces of the 32-bit words of a type, and where in a block each is found.
func quantWord(t WeightType, k int) (group int, d dequant) {
	if t == Q4_0 {
		i := k % 4
		if k%8 < 4 {
			return k / 8, dequant{low: 8, mask: 0xF00, shift: 8 - 8*i, zero: 8}
		}
		return k / 8, dequant{low: 12, mask: 0xF000, shift: 8 - 8*i, zero: 8}
	}
	return k / 4, dequant{low: 8, mask: 0xFF00, shift: 8 - 8*(k%4), zero: 128}
}

// dequantKinds is the distinct low bits of a type: each needs its own offset.
func dequantKinds(t WeightType) []dequant {
	_, first := quantWord(t, 0)
	if t == Q4_0 {
		_, second := quantWord(t, 4)
		return []dequant{first, second}
	}
	return []dequant{first}
}

// unpacker is the registers that unpack il vectors side by side.
type unpacker struct {
	*emitter
	kinds  []dequant
	scale  []asm.Vec   // per vector
	offset [][]asm.Vec // per vector and kind: -(2^(23-low) + zero) * scale
	w      []asm.Vec   // per vector: the value of the present k
	mask   []asm.Vec   // per kind, AVX-512
	one    []asm.Vec   // per kind, AVX-512
}

func newUnpacker(e *emitter, il int) *unpacker {
	u := &unpacker{emitter: e, kinds: dequantKinds(e.s.B)}
	for range il {
		u.scale = append(u.scale, e.vec())
		u.offset = append(u.offset, e.vecs(len(u.kinds)))
		u.w = append(u.w, e.vec())
	}
	if e.wide() {
		u.mask, u.one = e.vecs(len(u.kinds)), e.vecs(len(u.kinds))
	}
	return u
}

func (u *unpacker) setup() {
	for i := range u.mask {
		u.I(asm.VPBROADCASTD, u.mask[i], u.ConstU32(u.kinds[i].mask))
		u.I(asm.VPBROADCASTD, u.one[i], u.ConstU32(u.kinds[i].one()))
	}
}

// splat is a constant in all lanes: an embedded broadcast, or a whole vector in the pool.
func (e *emitter) splat(v uint32) asm.Mem {
	if e.wide() {
		return e.ConstU32(v).Bcast()
	}
	return e.ConstU32s(v, v, v, v, v, v, v, v)
}

// scales loads the scale of vector j of the block into slot i and derives the offsets.
func (u *unpacker) scales(i, j int) {
	u.I(asm.VCVTPH2PS, u.scale[i], u.b(j, 0, u.scale[i].Bytes()/2))
	for n, d := range u.kinds {
		u.I(asm.VMULPS, u.offset[i][n], u.scale[i], u.splat(math.Float32bits(d.offset())))
	}
}

// value unpacks element k of the block, of vector j, into slot i; at is where the words of the block's group 0 stand.
func (u *unpacker) value(i, j, k, at int) asm.Vec {
	w := u.w[i]
	group, d := quantWord(u.s.B, k)
	kind := 0
	for u.kinds[kind].low != d.low {
		kind++
	}
	word := u.b(j, at+64*group, w.Bytes())
	op, n := asm.VPSLLD, d.shift
	if d.shift < 0 {
		op, n = asm.VPSRLD, -d.shift
	}
	switch {
	case d.shift == 0:
		u.I(asm.VMOVUPS, w, word)
	case u.wide():
		u.I(op, w, word, asm.Imm(n))
	default:
		u.I(asm.VMOVUPS, w, word)
		u.I(op, w, w, asm.Imm(n))
	}
	if u.wide() {
		const maskThenOr = 0xEA // (w & mask) | one
		u.I(asm.VPTERNLOGD, w, u.mask[kind], u.one[kind], asm.Imm(maskThenOr))
	} else {
		u.I(asm.VPAND, w, w, u.splat(d.mask))
		u.I(asm.VPOR, w, w, u.splat(d.one()))
	}
	u.I(asm.VFMADD213PS, w, u.scale[i], u.offset[i][kind])
	return w
}

// emitQuant generates the tile of the chain "wide" for weights in blocks: each vector of W is unpacked in registers and
// multiplied by all rows. Panels are taken il vectors at a time, block by block.
func emitQuant(a *asm.Asm, s Spec) {
	e := newEmitter(a, s)
	il := s.interleave()
	u := newUnpacker(e, il)
	var x asm.Vec
	if s.Form == Load {
		x = e.vec()
	}
	var t tileArgs
	e.function(u.setup, func() {
		e.loop(unsafe.Offsetof(t.main), func() {
			for j0 := 0; j0 < e.v; j0 += il {
				u.block(j0, min(il, e.v-j0), x)
			}
			e.advance(e.aBase, 4*32)
			e.advance(e.bBase, PanelOffset(s.B, 32))
		})
	})
}

// block is the 32 k of the vectors j0 to j0+n-1, KU at a time.
func (u *unpacker) block(j0, n int, x asm.Vec) {
	for i := range n {
		u.scales(i, j0+i)
	}
	for k := range 32 {
		if j0 == 0 && k%4 == 0 {
			bytes := PanelOffset(u.s.B, 32)
			u.prefetch(bytes*k/32, bytes*(k+4)/32)
		}
		for i := range n {
			u.value(i, j0+i, k, 32)
		}
		for r := range u.s.MR {
			a := u.a(r, 4*k)
			if u.s.Form == Load {
				u.I(asm.VBROADCASTSS, x, a)
				a = asm.Mem{}
			}
			for i := range n {
				acc := u.acc[r*u.v+j0+i]
				if u.s.Form == Load {
					u.I(asm.VFMADD231PS, acc, x, u.w[i])
				} else {
					u.I(asm.VFMADD231PS, acc, u.w[i], a.Bcast())
				}
			}
		}
	}
}
