package microkernel

import (
	"math"
	"math/bits"
	"unsafe"

	"sandwich/microkernel/internal/asm"
)

// emitInt8 generates the tile of the chain "block". Per span of k that shares scales: the exact integer dot product of every
// accumulator, its conversion to float, and one FMA by the product of the two scales; then one FMA by the offset where weights have it.
func emitInt8(a *asm.Asm, s Spec) {
	e := &int8Tile{turns: newTurns(newEmitter(a, s))}
	e.dot = e.vecs(s.MR * e.v)
	e.w = e.vecs(e.v)
	e.x = e.vec()
	if s.int8Temporary() {
		e.t = e.vec()
	}
	if s.signedDot() {
		e.abs = e.vecs(e.v)
	}
	if s.int8Masks() > 0 {
		e.masks = e.vecs(s.int8Masks())
	}
	if e.levels {
		e.table = e.vec()
	}
	if e.span() < turnK {
		e.sum, e.one = e.vec(), e.vec()
	}
	var t tileArgs
	e.function(e.setup, func() {
		e.blocks(unsafe.Offsetof(t.main), func() {
			for k := 0; k < turnK; k += e.span() {
				e.part(k)
			}
			e.advance(e.aBase, ActQ8Bytes)
		})
	})
}

type int8Tile struct {
	turns
	dot   []asm.Vec // integer accumulators of the span, laid out like acc
	w     []asm.Vec // weights of four k; then their scales
	abs   []asm.Vec // magnitudes of the weights (signedDot)
	masks []asm.Vec // AVX-512: of the pieces of a byte
	x     asm.Vec   // four activations in all lanes; then a product of scales
	t     asm.Vec   // a temporary
	table asm.Vec   // levels
	sum   asm.Vec   // sum of a row's activations in the span
	one   asm.Vec   // bytes of 1
}

// Where things stand in a block of activations.
const (
	actScale = 0
	actBias  = 4
	actQ     = 8
)

// signedDot says that weights take part with their sign: the multiply-add of eight-bit numbers, which would overflow 16 bits.
func (s Spec) signedDot() bool { return s.Dot == MAdd && (s.B == Q8_0 || blockForms[s.B].levels) }

// int8Temporary says that the kernel needs a temporary register.
func (s Spec) int8Temporary() bool {
	f := &blockForms[s.B]
	return s.Dot == MAdd || s.ISA != AVX512 || f.subs != noSubs || len(f.planes) > 1
}

// int8Masks is the number of registers that hold masks.
func (s Spec) int8Masks() int {
	if s.ISA != AVX512 || s.B == Q8_0 {
		return 0
	}
	return len(blockForms[s.B].planes)
}

// int8Registers: an integer and a float accumulator per vector of the tile, the weights, and what emitInt8 hands out besides.
func (s Spec) int8Registers(tile, v int) int {
	f := &blockForms[s.B]
	n := 2*tile + v + 1 + s.int8Masks()
	if s.int8Temporary() {
		n++
	}
	if s.signedDot() {
		n += v
	}
	if f.levels {
		n++
	}
	if f.span() < turnK {
		n += 2
	}
	return n
}

func (e *int8Tile) setup() {
	for i, m := range e.masks {
		e.I(asm.VPBROADCASTD, m, e.ConstU32(e.byteMask(i)))
	}
	if e.levels {
		e.I(asm.VMOVUPS, e.table, e.levelTable())
	}
	if e.span() < turnK {
		e.I(asm.VPBROADCASTD, e.one, e.ConstU32(0x01010101))
	}
}

// levelTable is what four-bit numbers look up, in every 128 bits: the level, plus 128 unless the dot product is signed.
func (e *int8Tile) levelTable() asm.Mem {
	words := make([]uint32, e.table.Bytes()/4)
	for i := range e.table.Bytes() {
		l := uint8(levelsIQ4NL[i%16])
		if !e.s.signedDot() {
			l ^= 0x80
		}
		words[i/4] |= uint32(l) << (i % 4 * 8)
	}
	return e.ConstU32s(words...)
}

// byteMask is the bits of piece i of a number, in every byte.
func (e *int8Tile) byteMask(i int) uint32 {
	m := uint32(1<<e.planes[i]-1) * 0x01010101
	if i > 0 {
		m <<= e.planes[0]
	}
	return m
}

// zeroOf is the unsigned number that the dot product sees for a weight of 0, before its correction; 0 where it needs none.
func (e *int8Tile) zeroOf() int {
	switch {
	case e.s.signedDot():
		return 0
	case e.levels:
		return 128
	}
	return e.origin
}

// part is the span of k from k0 on: dot products, then their way into the accumulators.
func (e *int8Tile) part(k0 int) {
	e.start0()
	bytes := e.turnBytes()
	for g := k0 / 4; g < (k0+e.span())/4; g++ {
		e.prefetch(bytes*g/8, bytes*(g+1)/8)
		for j := range e.v {
			e.weights(j, g)
		}
		for r := range e.s.MR {
			e.row(r, g, g == k0/4)
		}
	}
	e.finishDots(k0)
	for j := range e.v {
		e.scale(e.w[j], j, k0)
	}
	for r := range e.s.MR {
		scale := e.a(r, actScale)
		if !e.wide() {
			e.I(asm.VBROADCASTSS, e.x, scale)
		}
		for j := range e.v {
			d, both := e.dot[r*e.v+j], e.x
			e.I(asm.VCVTDQ2PS, d, d)
			if e.wide() {
				e.I(asm.VMULPS, both, e.w[j], scale.Bcast())
			} else {
				both = e.t
				e.I(asm.VMULPS, both, e.w[j], e.x)
			}
			e.I(asm.VFMADD231PS, e.acc[r*e.v+j], d, both)
		}
	}
	if e.affine() {
		e.offsets(k0)
	}
}

// start0 sets the integer accumulators of dot products that only add: to zero, or to what undoes the stored weights' zero over a
// whole block of activations, whose bias is for a zero of 128.
func (e *int8Tile) start0() {
	if e.s.Dot == MAdd {
		return
	}
	if e.zeroOf() == 0 || e.span() < turnK {
		for _, d := range e.dot {
			e.zero(d)
		}
		return
	}
	for r := range e.s.MR {
		row := e.dot[r*e.v:][:e.v]
		e.bias(row[0], r)
		for _, d := range row[1:] {
			e.I(asm.VMOVAPS, d, row[0])
		}
	}
}

// bias is -zero times the sum of a block of activations.
func (e *int8Tile) bias(v asm.Vec, r int) {
	e.I(asm.VPBROADCASTD, v, e.a(r, actBias))
	if shift := bits.Len(uint(128/e.zeroOf())) - 1; shift > 0 {
		e.I(asm.VPSRAD, v, v, asm.Imm(shift))
	}
}

// bytesOf brings a piece of the numbers of four k, group g of the turn, of vector j into v, at its place in the bytes.
func (e *int8Tile) bytesOf(v asm.Vec, j, g, plane int) {
	word, bit := e.piece(j, 4*g, plane)
	n := -bit
	if plane > 0 {
		n += e.planes[0]
	}
	op := asm.VPSLLD
	if n < 0 {
		op, n = asm.VPSRLD, -n
	}
	switch {
	case n == 0 && e.wide() && plane == 0 && e.masks != nil:
		e.I(asm.VPANDD, v, e.masks[0], word)
		return
	case n == 0:
		e.I(asm.VMOVUPS, v, word)
	case e.wide():
		e.I(op, v, word, asm.Imm(n))
	default:
		e.I(asm.VMOVUPS, v, word)
		e.I(op, v, v, asm.Imm(n))
	}
	switch {
	case e.planes[plane] == 8 || e.wide() && plane > 0: // nothing to mask, or masked as it is joined
	case e.wide():
		e.I(asm.VPANDD, v, v, e.masks[plane])
	default:
		e.I(asm.VPAND, v, v, e.splat(e.byteMask(plane)))
	}
}

// weights brings the numbers of group g of the turn, of vector j, into w: unsigned, or signed with the magnitude in abs.
func (e *int8Tile) weights(j, g int) {
	const orMasked = 0xF8 // w | (t & mask)
	w := e.w[j]
	e.bytesOf(w, j, g, 0)
	if len(e.planes) > 1 {
		e.bytesOf(e.t, j, g, 1)
		if e.wide() {
			e.I(asm.VPTERNLOGD, w, e.t, e.masks[1], asm.Imm(orMasked))
		} else {
			e.I(asm.VPOR, w, w, e.t)
		}
	}
	if e.levels {
		e.I(asm.VPSHUFB, w, e.table, w)
	}
	if e.s.signedDot() {
		if !e.levels {
			e.I(asm.VPXOR, w, w, e.splat(0x80808080))
		}
		e.I(asm.VPABSB, e.abs[j], w)
	}
}

// row adds the products of four k to the integer accumulators of row r.
func (e *int8Tile) row(r, g int, first bool) {
	x := e.a(r, actQ+4*g)
	if e.s.Form == Load {
		e.I(asm.VPBROADCASTD, e.x, x)
	}
	for j := range e.v {
		d := e.dot[r*e.v+j]
		switch {
		case e.s.Dot == MAdd:
			e.multiplyAdd(d, j, first)
		case e.s.Form == Embed:
			e.I(asm.VPDPBUSD, d, e.w[j], x.Bcast())
		case e.s.Dot == AVXVNNI:
			e.I(asm.VPDPBUSDV, d, e.w[j], e.x)
		default:
			e.I(asm.VPDPBUSD, d, e.w[j], e.x)
		}
	}
}

// inWords says that the multiply-add of a whole span fits 16 bits: numbers of four bits over 32 k reach 8 * 2 * 15 * 127 = 30480.
func (e *int8Tile) inWords() bool { return !e.s.signedDot() && e.bits() <= 4 }

// multiplyAdd is the dot product without VNNI. Pairs of products are summed in 16 bits, and where a span does not fit there
// widened to 32 bits at once. Eight-bit numbers give their sign to the activation, so that a pair reaches 2 * 128 * 127 = 32512 at the
// most.
func (e *int8Tile) multiplyAdd(d asm.Vec, j int, first bool) {
	to, w, x := e.t, e.w[j], e.x
	if e.s.signedDot() {
		e.I(asm.VPSIGNB, e.t, e.x, w)
		w, x = e.abs[j], e.t
	}
	if first && e.inWords() {
		to = d
	}
	e.I(asm.VPMADDUBSW, to, w, x)
	switch {
	case e.inWords() && !first:
		e.I(asm.VPADDW, d, d, to)
	case e.inWords():
	case first:
		e.I(asm.VPMADDWD, d, to, e.ones())
	default:
		e.I(asm.VPMADDWD, to, to, e.ones())
		e.I(asm.VPADDD, d, d, to)
	}
}

// ones is a vector of 16-bit ones in the pool.
func (e *int8Tile) ones() asm.Mem {
	words := make([]uint32, e.w[0].Bytes()/4)
	for i := range words {
		words[i] = 0x00010001
	}
	return e.ConstU32s(words...)
}

// finishDots makes the accumulators the signed dot products: 16-bit sums are widened, and zero times the sum of the activations is
// taken off where that has not been done at the start.
func (e *int8Tile) finishDots(k0 int) {
	if e.s.Dot == MAdd && e.inWords() {
		for _, d := range e.dot {
			e.I(asm.VPMADDWD, d, d, e.ones())
		}
	}
	short := e.span() < turnK
	if e.zeroOf() == 0 || !short && e.s.Dot != MAdd {
		return
	}
	for r := range e.s.MR {
		op, off := asm.VPADDD, e.x
		if short {
			op, off = asm.VPSUBD, e.sum
			e.sumOf(r, k0)
			e.I(asm.VPSLLD, off, off, asm.Imm(bits.Len(uint(e.zeroOf()))-1))
		} else {
			e.bias(off, r)
		}
		for _, d := range e.dot[r*e.v:][:e.v] {
			e.I(op, d, d, off)
		}
	}
}

// sumOf adds up the activations of row r in the span: a dot product with ones.
func (e *int8Tile) sumOf(r, k0 int) {
	for g := k0 / 4; g < (k0+e.span())/4; g++ {
		x, first := e.a(r, actQ+4*g), g == k0/4
		if first && e.s.Dot != MAdd {
			e.zero(e.sum)
		}
		if e.s.Dot == VNNI {
			e.I(asm.VPDPBUSD, e.sum, e.one, x.Bcast())
			continue
		}
		e.I(asm.VPBROADCASTD, e.x, x)
		switch {
		case e.s.Dot == AVXVNNI:
			e.I(asm.VPDPBUSDV, e.sum, e.one, e.x)
		case first:
			e.I(asm.VPMADDUBSW, e.sum, e.one, e.x)
		default:
			e.I(asm.VPMADDUBSW, e.t, e.one, e.x)
			e.I(asm.VPADDW, e.sum, e.sum, e.t)
		}
	}
	if e.s.Dot == MAdd {
		e.I(asm.VPMADDWD, e.sum, e.sum, e.ones())
	}
}

// scale loads the scale of vector j for the span at k0.
func (e *int8Tile) scale(v asm.Vec, j, k0 int) {
	e.I(asm.VCVTPH2PS, v, e.half(j, 0))
	switch e.subs {
	case pairSubs:
		e.I(asm.VPMOVZXBD, e.t, e.sub(j, 0))
	case nibbleSubs:
		e.I(asm.VPMOVZXBD, e.t, e.sub(j, k0/16))
		e.and(e.t, e.t, 15)
	case signedSubs:
		e.I(asm.VPMOVSXBD, e.t, e.sub(j, k0/16))
	default:
		return
	}
	e.I(asm.VCVTDQ2PS, e.t, e.t)
	e.I(asm.VMULPS, v, v, e.t)
}

// offsets adds what the weights' offsets contribute: the sum of the activations of the span, times their scale, times the offset.
func (e *int8Tile) offsets(k0 int) {
	for j, v := range e.w {
		e.I(asm.VCVTPH2PS, v, e.half(j, 1))
		switch e.subs {
		case pairSubs:
			e.I(asm.VPMOVZXBD, e.t, e.sub(j, 1))
		case nibbleSubs:
			e.I(asm.VPMOVZXBD, e.t, e.sub(j, k0/16))
			e.I(asm.VPSRLD, e.t, e.t, asm.Imm(4))
		default:
			continue
		}
		e.I(asm.VCVTDQ2PS, e.t, e.t)
		e.I(asm.VMULPS, v, v, e.t)
	}
	op := asm.VFMADD231PS
	if e.subs != noSubs {
		op = asm.VFNMADD231PS // the K types take their offset off
	}
	for r := range e.s.MR {
		if e.span() < turnK {
			e.sumOf(r, k0)
			e.I(asm.VCVTDQ2PS, e.x, e.sum)
		} else {
			e.I(asm.VPBROADCASTD, e.x, e.a(r, actBias))
			e.I(asm.VCVTDQ2PS, e.x, e.x)
			e.I(asm.VMULPS, e.x, e.x, e.splat(math.Float32bits(-1.0/128)))
		}
		if scale := e.a(r, actScale); e.wide() {
			e.I(asm.VMULPS, e.x, e.x, scale.Bcast())
		} else {
			e.I(asm.VBROADCASTSS, e.t, scale)
			e.I(asm.VMULPS, e.x, e.x, e.t)
		}
		for j := range e.v {
			e.I(op, e.acc[r*e.v+j], e.x, e.w[j])
		}
	}
}
