package microkernel

import "encoding/binary"

// rawTurn is one turn of one row on its way into a panel.
type rawTurn struct {
	halves [2]uint16
	subs   [2]uint8  // the two bytes of scales of the turn, as blockForm stores them
	u      [4]uint64 // the 32 numbers, a byte each
}

// read takes turn n out of a block of a row.
func (r *rawTurn) read(t WeightType, block []byte, n int) {
	switch t {
	case Q4_1:
		r.halves = [2]uint16{half16(block), half16(block[2:])}
		r.nibbles(block[4:20])
	case Q5_0:
		r.halves[0] = half16(block)
		r.nibbles(block[6:22])
		r.fifthBits(binary.LittleEndian.Uint32(block[2:]))
	case Q5_1:
		r.halves = [2]uint16{half16(block), half16(block[2:])}
		r.nibbles(block[8:24])
		r.fifthBits(binary.LittleEndian.Uint32(block[4:]))
	case Q2_K:
		r.halves = [2]uint16{half16(block[80:]), half16(block[82:])}
		r.subs = [2]uint8{block[2*n], block[2*n+1]}
		r.field(block[16+n/4*32:], n%4*2, 3, 0)
	case Q3_K:
		r.halves[0] = half16(block[108:])
		r.subs = [2]uint8{scaleQ3K(block[96:108], 2*n), scaleQ3K(block[96:108], 2*n+1)}
		r.field(block[32+n/4*32:], n%4*2, 3, 0)
		r.field(block, n, 1, 2)
	case Q4_K:
		r.halves = [2]uint16{half16(block), half16(block[2:])}
		r.subs = scalesQ4K(block[4:16], n)
		r.field(block[16+n/2*32:], n%2*4, 15, 0)
	case Q5_K:
		r.halves = [2]uint16{half16(block), half16(block[2:])}
		r.subs = scalesQ4K(block[4:16], n)
		r.field(block[48+n/2*32:], n%2*4, 15, 0)
		r.field(block[16:], n, 1, 4)
	case Q6_K:
		r.halves[0] = half16(block[208:])
		r.subs = [2]uint8{block[192+2*n], block[193+2*n]}
		r.field(block[n/4*64+n%2*32:], n%4/2*4, 15, 0)
		r.field(block[128+n/4*32:], n%4*2, 3, 4)
	}
}

func half16(b []byte) uint16 { return binary.LittleEndian.Uint16(b) }

const eachByte = 0x0101010101010101

// field takes the masked bits of 32 bytes from bit `from` up, and puts them at bit `to` of the numbers; the lowest piece comes first.
func (r *rawTurn) field(b []byte, from int, mask uint64, to int) {
	b = b[:turnK]
	for i := range r.u {
		x := binary.LittleEndian.Uint64(b[8*i:]) >> from & (mask * eachByte) << to
		if to == 0 {
			r.u[i] = x
		} else {
			r.u[i] |= x
		}
	}
}

// nibbles takes 16 bytes that hold k in the low nibble and k+16 in the high one.
func (r *rawTurn) nibbles(b []byte) {
	for i := range 2 {
		x := binary.LittleEndian.Uint64(b[8*i:])
		r.u[i], r.u[2+i] = x&(15*eachByte), x>>4&(15*eachByte)
	}
}

// fifthBits adds bit k of the word to number k.
func (r *rawTurn) fifthBits(word uint32) {
	const diagonal, round = 0x8040201008040201, 0x7F * eachByte
	for i := range r.u {
		x := uint64(word>>(8*i)&255) * eachByte & diagonal
		r.u[i] |= (x + round) >> 7 & eachByte << 4
	}
}

// scaleQ3K is one of the sixteen 6-bit scales minus 32: low nibbles in bytes 0 to 7, first the low then the high ones, upper
// pairs of bits in bytes 8 to 11.
func scaleQ3K(p []byte, g int) uint8 {
	return (p[g%8]>>(g/8*4)&15 | p[8+g%4]>>(g/4*2)&3<<4) - 32
}

// scalesQ4K is pair j of the eight 6-bit scales and offsets: pairs 0 to 3 fill the low six bits of bytes 0 to 3 and 4 to 7,
// pairs 4 to 7 the nibbles of bytes 8 to 11 and the upper two bits of the others.
func scalesQ4K(p []byte, j int) [2]uint8 {
	if j < 4 {
		return [2]uint8{p[j] & 63, p[j+4] & 63}
	}
	return [2]uint8{p[j+4]&15 | p[j-4]>>6<<4, p[j+4]>>4 | p[j]>>6<<4}
}

// packTurns packs sixteen rows of blocks of any quantized type, turn by turn.
func packTurns(t WeightType, panel, src []byte, rowStride, columns, k int) {
	if columns < PanelWidth {
		clear(panel)
	}
	f, info := &blockForms[t], &weightInfos[t]
	turns := info.block / turnK
	for b := range k / info.block {
		block := panel[b*info.panelBytes:][:info.panelBytes]
		for c := range columns {
			var r rawTurn
			raw := src[c*rowStride+b*info.rowBytes:][:info.rowBytes]
			for n := range turns {
				r.read(t, raw, n)
				f.put(block[f.headBytes()+n*f.turnBytes():][:f.turnBytes()], c, &r)
			}
			for h := range f.halves {
				binary.LittleEndian.PutUint16(block[2*(PanelWidth*h+c):], r.halves[h])
			}
		}
	}
}

// put writes the scales and the planes of one turn of one column.
func (f *blockForm) put(turn []byte, c int, r *rawTurn) {
	if f.subs != noSubs {
		turn[c], turn[PanelWidth+c] = r.subs[0], r.subs[1]
	}
	plane, low := turn[f.subBytes():], 0
	for _, bits := range f.planes {
		mask := uint32(1<<bits-1) * 0x01010101
		groups := 8 / bits // of four k in one word
		for w := range bits {
			word := uint32(0)
			for p := range groups {
				g := w*groups + p
				word |= uint32(r.u[g/2]>>(g%2*32)) >> low & mask << (p * bits)
			}
			binary.LittleEndian.PutUint32(plane[64*w+4*c:], word)
		}
		plane, low = plane[64*bits:], low+bits
	}
}
