package gemm

import (
	"unsafe"

	"sandwich/microkernel/internal/arm64/asm"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// newQuantized allocates the tile of the chain "wide" for quantized weights: each vector of W is
// dequantized in registers and multiplied by the lanes of all rows.
func newQuantized(a *asm.Asm, s spec) (_ *tile, emit func()) {
	e := newTile(a, s)
	rows := e.vecs(s.MR)
	u := newUnpacker(e)
	return e, func() { e.function(u.setup, func() { u.body(rows) }) }
}

// body multiplies by rows, which hold four k of each row.
func (u *unpacker) body(rows []asm.V) {
	var t kernel.TileArgs
	u.blocks(unsafe.Offsetof(t.Main), func() {
		bytes := u.SubBlockBytes()
		for j := range u.v {
			u.each(j, func(k int, w asm.V) {
				if k%4 == 0 {
					for r, a := range rows {
						u.I(asm.LDRQ, a, u.aBase[r], asm.Imm(4*k))
					}
					if j == 0 {
						u.prefetch(bytes*k/qtype.SubBlockK, bytes*(k+4)/qtype.SubBlockK)
					}
				}
				for r, a := range rows {
					u.I(asm.FMLAL, u.acc[r*u.v+j], w, a, asm.Imm(k%4))
				}
			})
		}
		u.advance(u.aBase, 4*qtype.SubBlockK)
	})
}

// unpacker dequantizes blocks to float32, four columns and one k at a time. A number is moved to
// the top byte of its word, where one conversion makes it a float32; one FMA by the scale and the
// offset computes the weight exactly.
type unpacker struct {
	subBlocks
	index         [3]asm.V // bytes 1, 2 and 3 of every word, moved to the top of it
	bytes         asm.V    // four k of four columns
	scale, offset asm.V
	w             []asm.V // first numbers, then values
}

func newUnpacker(e *tile) *unpacker {
	u := &unpacker{subBlocks: newSubBlocks(e)}
	copy(u.index[:], e.vecs(3))
	u.bytes, u.scale = e.vec(), e.vec()
	if u.Codebook == nil {
		u.offset = e.vec()
	}
	u.w = e.vecs(max(2, min(6, e.left()/2*2)))
	return u
}

func (u *unpacker) setup() {
	u.constants()
	for k, v := range u.index {
		var b [16]byte
		for i := range b {
			b[i] = 0xFF // no such byte: zero
			if i%4 == 3 {
				b[i] = byte(i/4*4 + k + 1)
			}
		}
		u.ConstQ(v, b)
	}
}

// each emits the 32 values of vector j in the current sub-block, k ascending, and calls use after
// each.
func (u *unpacker) each(j int, use func(k int, w asm.V)) {
	if u.Made() {
		u.make(j, u.w[0], u.w[1])
	}
	for k := range qtype.SubBlockK {
		if k%u.Span() == 0 {
			u.spanScales(j, k)
		}
		if k%4 == 0 {
			u.numbers(u.bytes, j, k/4)
		}
		use(k, u.value(k))
	}
}

// value converts byte k%4 of the words in bytes.
func (u *unpacker) value(k int) asm.V {
	pair := 2 * k % len(u.w)
	w, out := u.w[pair], u.w[pair+1]
	if i := k % 4; i == 0 {
		u.I(asm.SHL4S, w, u.bytes, asm.Imm(24))
	} else {
		u.I(asm.TBL, w, u.bytes, u.index[i-1])
	}
	if u.Codebook != nil {
		u.I(asm.SCVTFX, w, w, asm.Imm(24))
		u.I(asm.FMUL, w, w, u.scale)
		return w
	}
	u.I(asm.UCVTFX, w, w, asm.Imm(24))
	u.Move(out, u.offset)
	u.I(asm.FMLA, out, w, u.scale)
	return out
}

// spanScales loads the scale and the offset of vector j for the span of element k. The offset
// subtracts the zero-point.
func (u *unpacker) spanScales(j, k int) {
	t := u.w[1]
	u.scales(u.scale, u.offset, u.w[0], t, j, k)
	if u.Codebook == nil && !u.Affine() {
		u.SplatF(t, -float32(u.ZeroPoint))
		u.I(asm.FMUL, u.offset, u.scale, t)
	}
}
