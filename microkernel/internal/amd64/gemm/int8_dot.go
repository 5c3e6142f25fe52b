package gemm

import (
	"math/bits"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// flipMask returns the opmask of the negative weights of vector j; K1 holds the columns of the
// last panel.
func flipMask(j int) asm.Mask { return asm.K2 + asm.Mask(j) }

// flipMasks is the number of such opmasks.
const flipMasks = 6

// levelTable returns the lookup table of a codebook, repeated in every 128 bits: the values, with
// Lift added unless the dot product is signed.
func (e *int8Tile) levelTable() asm.Mem {
	words := make([]uint32, e.table.Bytes()/4)
	for i := range e.table.Bytes() {
		l := uint8(e.Codebook[i%16])
		if !e.s.signedDot() {
			l += uint8(e.Lift())
		}
		words[i/4] |= uint32(l) << (i % 4 * 8)
	}
	return e.ConstU32s(words...)
}

// byteMask returns the bits of bit field i of a number, in every byte.
func (e *int8Tile) byteMask(i int) uint32 {
	return uint32(1<<e.Fields[i].Bits-1) * 0x01010101 << e.Low(i)
}

// everywhere returns a vector in the pool whose 32-bit words are all the same.
func (e *int8Tile) everywhere(word uint32) asm.Mem {
	words := make([]uint32, e.w[0].Bytes()/4)
	for i := range words {
		words[i] = word
	}
	return e.ConstU32s(words...)
}

// ones returns 1 in every 16 bits: a multiply-add by it sums pairs.
func (e *int8Tile) ones() asm.Mem { return e.everywhere(0x00010001) }

// zeroOf returns the unsigned number that the dot product reads for a weight of 0, or 0 if no
// correction of single dot products is needed.
func (e *int8Tile) zeroOf() int {
	if e.s.integerScales() {
		return 0 // correctZero does so once per superblock
	}
	return e.zeroNumber()
}

// zeroNumber returns the unsigned number that the dot product reads for a weight of 0.
func (e *int8Tile) zeroNumber() int {
	if e.s.signedDot() {
		return 0
	}
	return e.Lift()
}

// start0 sets the integer accumulators of dot products that only add: to zero, or to the
// correction for the zero of the stored weights.
func (e *int8Tile) start0(k0 int) {
	if e.s.Dot == kernel.MAdd {
		return
	}
	if e.zeroOf() == 0 {
		for _, d := range e.dot {
			e.zero(d)
		}
		return
	}
	for r := range e.s.MR {
		row := e.dot[r*e.v:][:e.v]
		e.bias(row[0], r, k0)
		for _, d := range row[1:] {
			e.I(asm.VMOVAPS, d, row[0])
		}
	}
}

// bias loads -zeroOf times the sum of the activations of the span.
func (e *int8Tile) bias(v asm.Vec, r, k0 int) {
	if e.Span() < qtype.SubBlockK {
		e.halfSum(v, r, k0, -e.zeroOf())
		return
	}
	e.I(asm.VPBROADCASTD, v, e.a(r, kernel.ActBias))
	if shift := bits.Len(uint(128/e.zeroOf())) - 1; shift > 0 {
		e.I(asm.VPSRAD, v, v, asm.Imm(shift))
	}
}

// halfSum loads the sum of the sixteen activations starting at k0, times a factor.
func (e *int8Tile) halfSum(v asm.Vec, r, k0, factor int) {
	word := uint32(uint16(factor))
	if k0 > 0 {
		word <<= 16
	}
	e.I(asm.VPBROADCASTD, v, e.a(r, kernel.ActHalfSums))
	e.I(asm.VPMADDWD, v, v, e.everywhere(word))
}

// bytesOf loads a bit field of four k, group g of the sub-block of vector j, into v, at its
// position in the bytes.
func (e *int8Tile) bytesOf(v asm.Vec, j, g, plane int) {
	word, bit := e.field(j, j, 4*g, plane)
	n := e.Low(plane) - bit
	if n == 0 && e.wide() && plane == 0 && len(e.masks) > 0 {
		e.I(asm.VPANDD, v, e.masks[0], word)
		return
	}
	e.shiftedWord(v, word, n)
	switch {
	case e.Fields[plane].Bits == 8 || e.wide() && plane > 0: // nothing to mask, or masked as it is joined
	case e.wide():
		e.I(asm.VPANDD, v, v, e.masks[plane])
	default:
		e.I(asm.VPAND, v, v, e.splat(e.byteMask(plane)))
	}
}

// weights loads the numbers of group g of the sub-block of vector j into w[i]: unsigned, or as
// magnitude and sign.
func (e *int8Tile) weights(i, j, g int) {
	const orMasked = 0xF8 // w | (t & mask)
	w := e.w[i]
	if e.form.flip && e.Codebook == nil {
		word, _ := e.field(j, j, 4*g, 0)
		e.I(asm.VPXORD, w, e.top, word)
		e.split(j)
		return
	}
	e.bytesOf(w, j, g, 0)
	if len(e.Fields) > 1 {
		e.bytesOf(e.t[0], j, g, 1)
		if e.wide() {
			e.I(asm.VPTERNLOGD, w, e.t[0], e.masks[1], asm.Imm(orMasked))
		} else {
			e.I(asm.VPOR, w, w, e.t[0])
		}
	}
	if e.Codebook != nil {
		e.I(asm.VPSHUFB, w, e.table, w)
	}
	switch {
	case e.form.flip:
		e.split(j)
	case e.form.abs:
		if e.Codebook == nil {
			e.I(asm.VPXOR, w, w, e.splat(0x80808080))
		}
		e.I(asm.VPABSB, e.abs[j], w)
	}
}

// split replaces the weights of vector j by their magnitudes and an opmask of their signs.
func (e *int8Tile) split(j int) {
	e.I(asm.VPMOVB2M, flipMask(j), e.w[j])
	e.I(asm.VPABSB, e.w[j], e.w[j])
}

// row adds the products of the current groups, starting at g, to the integer accumulators of row
// r.
func (e *int8Tile) row(r, g int, first bool) {
	_, at := e.s.actBlock()
	x := e.a(r, at+4*g)
	if e.s.Form != kernel.Embed {
		for i, v := range e.x {
			e.I(asm.VPBROADCASTD, v, x.Off(4*i))
		}
	}
	for j := range e.v {
		d := e.dot[r*e.v+j]
		switch {
		case e.s.Dot == kernel.MAdd:
			e.multiplyAdd(d, j, first)
		case e.s.Form == kernel.Embed:
			e.I(asm.VPDPBUSD, d, e.w[j], x.Bcast())
		case e.s.Dot == kernel.AVXVNNI:
			e.I(asm.VPDPBUSDV, d, e.w[j], e.x[0])
		default:
			e.I(asm.VPDPBUSD, d, e.w[j], e.x[0])
		}
	}
}

// inWords reports whether the multiply-add of a whole span fits 16 bits: numbers of four bits over
// 32 k reach 8 * 2 * 15 * 127 = 30480.
func (e *int8Tile) inWords() bool { return e.form.words == e.Span()/4 }

// multiplyAdd emits the dot product without VNNI. Pairs of products are summed in 16 bits as long
// as they fit, then widened to 32. The sign of an eight-bit weight is moved to the activation, so
// that a pair is at most 2 * 128 * 127 = 32512.
func (e *int8Tile) multiplyAdd(d asm.Vec, j int, first bool) {
	to, w, x := e.t[0], e.w[j], e.x[0]
	switch {
	case e.form.flip:
		e.I(asm.VMOVAPS, to, x)
		e.I(asm.VPSUBB, to.K(flipMask(j)), e.none, x)
		x = to
	case e.form.abs:
		e.I(asm.VPSIGNB, to, x, w)
		w, x = e.abs[j], to
	case e.inWords() && first:
		e.I(asm.VPMADDUBSW, d, w, x)
		return
	}
	e.I(asm.VPMADDUBSW, to, w, x)
	if e.inWords() {
		e.I(asm.VPADDW, d, d, to)
		return
	}
	if e.form.together == 2 {
		e.I(asm.VPMADDUBSW, e.t[1], e.w[e.v+j], e.x[1])
		e.I(asm.VPADDW, to, to, e.t[1])
	}
	if first {
		e.I(asm.VPMADDWD, d, to, e.ones())
		return
	}
	e.I(asm.VPMADDWD, to, to, e.ones())
	e.I(asm.VPADDD, d, d, to)
}

// finishDots converts the accumulators of the multiply-add to signed dot products: it widens
// 16-bit sums and subtracts zeroOf times the sum of the activations.
func (e *int8Tile) finishDots(k0 int) {
	if e.s.Dot != kernel.MAdd {
		return
	}
	if e.inWords() {
		for _, d := range e.dot {
			e.I(asm.VPMADDWD, d, d, e.ones())
		}
	}
	if e.zeroOf() == 0 {
		return
	}
	for r := range e.s.MR {
		e.bias(e.x[0], r, k0)
		for _, d := range e.dot[r*e.v:][:e.v] {
			e.I(asm.VPADDD, d, d, e.x[0])
		}
	}
}
