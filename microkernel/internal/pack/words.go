package pack

import (
	"encoding/binary"
	"sync"
)

const eachByte = 0x0101010101010101

// split converts eight k of a row to two words. In each byte, the bits selected by mask belong to
// the first word, and those `bits` above them to the second. The upper four k are placed next to
// the lower four.
func split(x uint64, mask uint32, bits int) (first, second uint32) {
	near, far := uint32(x), uint32(x>>32)
	return near&mask | far&mask<<bits, near>>bits&mask | far&^mask
}

// cross exchanges the bits of x above the mask with those of y inside it.
func cross(x, y, mask uint64, bits int) (uint64, uint64) {
	swap := (x>>bits ^ y) & mask
	return x ^ swap<<bits, y ^ swap
}

// nibbles computes four words per column from sixteen bytes.
func (s *step) nibbles(to, src []byte, stride, columns int) {
	near, far, src := to[s.to[0]:], to[s.to[1]:], src[s.from[0]:]
	for c := range columns {
		b := src[c*stride:][:16]
		d, e := near[4*c:][:line+4], far[4*c:][:line+4]
		w, v := split(binary.LittleEndian.Uint64(b), 0x0F0F0F0F, 4)
		put4(d, w)
		put4(e, v)
		w, v = split(binary.LittleEndian.Uint64(b[8:]), 0x0F0F0F0F, 4)
		put4(d[line:], w)
		put4(e[line:], v)
	}
}

// pairs computes four words per column from sixteen bytes, each of which contributes four times.
func (s *step) pairs(to, src []byte, stride, columns int) {
	d0, d1, d2, d3, src := to[s.to[0]:], to[s.to[1]:], to[s.to[2]:], to[s.to[3]:], src[s.from[0]:]
	for c := range columns {
		b := src[c*stride:][:16]
		x, y := cross(binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), 0x0F*eachByte, 4)
		w, v := split(x, 0x33333333, 2)
		put4(d0[4*c:], w)
		put4(d1[4*c:], v)
		w, v = split(y, 0x33333333, 2)
		put4(d2[4*c:], w)
		put4(d3[4*c:], v)
	}
}

// ones computes eight words per column from 32 bytes.
func (s *step) ones(to, src []byte, stride, columns int) {
	src = src[s.from[0]:]
	for c := range columns {
		b, d := src[c*stride:][:32], to[4*c:]
		x0, x2 := cross(binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[16:]), 0x0F*eachByte, 4)
		x1, x3 := cross(binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[24:]), 0x0F*eachByte, 4)
		x0, x1 = cross(x0, x1, 0x33*eachByte, 2)
		x2, x3 = cross(x2, x3, 0x33*eachByte, 2)
		for i, x := range [4]uint64{x0, x1, x2, x3} {
			w, v := split(x, 0x55555555, 1)
			put4(d[s.to[2*i]:], w)
			put4(d[s.to[2*i+1]:], v)
		}
	}
}

// bytes computes eight words per column from the 32 bytes of a sub-block.
func (s *step) bytes(to, src []byte, stride, columns int) {
	to, src, flip := to[s.to[0]:], src[s.from[0]:], s.flip
	for c := range columns {
		b, d := src[c*stride:][:32], to[4*c:][:7*line+4]
		put8(d[0*line:1*line+4], binary.LittleEndian.Uint64(b)^flip)
		put8(d[2*line:3*line+4], binary.LittleEndian.Uint64(b[8:])^flip)
		put8(d[4*line:5*line+4], binary.LittleEndian.Uint64(b[16:])^flip)
		put8(d[6*line:7*line+4], binary.LittleEndian.Uint64(b[24:])^flip)
	}
}

// eight returns eight k of a row, with other bits around them.
func (s *step) eight(row []byte, o int) uint64 {
	return binary.LittleEndian.Uint64(row[s.from[o]:]) >> (s.shift[o] & 63)
}

// subNibbles is nibbles for a single sub-block. The upper halves are placed next to the lower
// ones, whose bits there are zero.
func (s *step) subNibbles(to, src []byte, stride, columns int) {
	const mask = 0x0F * eachByte
	to = to[s.to[0]:]
	for c := range columns {
		row, d := src[c*stride:], to[4*c:][:3*line+4]
		x0, x1, x2, x3 := s.eight(row, 0)&mask, s.eight(row, 1)&mask, s.eight(row, 2)&mask, s.eight(row, 3)&mask
		put4(d, uint32(x0|x0>>28))
		put4(d[line:], uint32(x1|x1>>28))
		put4(d[2*line:], uint32(x2|x2>>28))
		put4(d[3*line:], uint32(x3|x3>>28))
	}
}

// subPairs is pairs for a single sub-block.
func (s *step) subPairs(to, src []byte, stride, columns int) {
	const mask = 0x03 * eachByte
	to = to[s.to[0]:]
	for c := range columns {
		row, d := src[c*stride:], to[4*c:][:line+4]
		x := s.eight(row, 0)&mask | s.eight(row, 1)&mask<<4
		y := s.eight(row, 2)&mask | s.eight(row, 3)&mask<<4
		put4(d, uint32(x|x>>30))
		put4(d[line:], uint32(y|y>>30))
	}
}

// subOnes is ones for a single sub-block.
func (s *step) subOnes(to, src []byte, stride, columns int) {
	const mask = eachByte
	to = to[s.to[0]:]
	for c := range columns {
		row := src[c*stride:]
		x := s.eight(row, 0)&mask | s.eight(row, 1)&mask<<2 | s.eight(row, 2)&mask<<4 | s.eight(row, 3)&mask<<6
		s.put(to, c, uint32(x|x>>31))
	}
}

// put writes a word of single bits.
func (s *step) put(to []byte, c int, word uint32) {
	if s.share {
		to[c] = byte(word)
		return
	}
	put4(to[4*c:], word)
}

// densePairs is pairs for four numbers in every byte: it transposes sixteen pairs of bits as a
// matrix of four by four.
func (s *step) densePairs(to, src []byte, stride, columns int) {
	to, src = to[s.to[0]:], src[s.from[0]:]
	for c := range columns {
		x := binary.LittleEndian.Uint64(src[c*stride:])
		swap := (x>>6 ^ x) & 0x00CC00CC00CC00CC
		x ^= swap ^ swap<<6
		swap = (x>>12 ^ x) & 0x0000F0F00000F0F0
		put8(to[4*c:][:line+4], x^swap^swap<<12)
	}
}

// denseOnes is ones for eight numbers in every byte, by a lookup table.
func (s *step) denseOnes(to, src []byte, stride, columns int) {
	spread := spreadBits()
	to, src = to[s.to[0]:], src[s.from[0]:]
	for c := range columns {
		x := src[c*stride:][:4]
		s.put(to, c, spread[x[0]]|spread[x[1]]<<2|spread[x[2]]<<4|spread[x[3]]<<6)
	}
}

// spreadBits maps a byte to bits 0 to 3 at bit 0 of four bytes, and the other bits above them.
var spreadBits = sync.OnceValue(func() *[256]uint32 {
	var spread [256]uint32
	for i := range spread {
		for b := range 8 {
			spread[i] |= uint32(i) >> b & 1 << (b%4*8 + b/4)
		}
	}
	return &spread
})

// put4 writes a word: four bytes of a column.
func put4(to []byte, w uint32) { binary.LittleEndian.PutUint32(to, w) }

// put8 writes two words of a column to consecutive lines.
func put8(to []byte, w uint64) {
	binary.LittleEndian.PutUint32(to, uint32(w))
	binary.LittleEndian.PutUint32(to[line:], uint32(w>>32))
}
