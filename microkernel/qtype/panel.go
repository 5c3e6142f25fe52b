package qtype

import "encoding/binary"

// PanelWidth is the number of columns (rows of the weight matrix) of one packed panel: one AVX-512
// vector.
const PanelWidth = 16

// A packed block of a quantized type holds its scales, [16]float16 each, then for each 32 k a
// sub-block: the scales of the sub-block, [2][16] bytes where there are any, then a plane for each
// bit field of its numbers. A plane of b bits holds 32/b consecutive k of a column in one 32-bit
// word: bits b*p and up of byte i of word w of column c, at 64*w + 4*c + i, belong to k = 32/b*w +
// 4*p + i. Four consecutive k are thus bytes of one word, as integer dot products want them,
// whatever the bits.
//
// A plane whose bits four k share holds one byte for each column, which is all four bytes of its
// word. In the plane of signs of ParitySubs, the last of every eight k makes the number of ones
// even and is not stored: bits 25, 27, 29 and 31 of the word hold s/2 in its place, low bit first.

// PanelBytes is the length of one block of a packed panel, all columns.
func (d *Desc) PanelBytes() int { return d.packed }

// measure is what Add keeps as packed: every product asks for the length of panels.
func (d *Desc) measure() int {
	if d.Block == 1 {
		return d.Bytes * PanelWidth
	}
	return d.HeadBytes() + d.SubBlocks()*d.SubBlockBytes()
}

// HeadBytes is what stands before the first sub-block of a block.
func (d *Desc) HeadBytes() int { return 2 * PanelWidth * len(d.BlockScales) }

// SubBytes is the length of the scales at the front of a sub-block.
func (d *Desc) SubBytes() int {
	switch d.Subs {
	case NoSubs, ParitySubs:
		return 0
	case OddSubs:
		return PanelWidth
	case PairSubs:
		return 2 * PanelWidth
	}
	return SubBlockK / d.Span() * PanelWidth
}

// SubBlockBytes is the length of a sub-block.
func (d *Desc) SubBlockBytes() int { return d.plane(len(d.Fields)) }

// plane is where in a sub-block the plane of a bit field begins.
func (d *Desc) plane(field int) int {
	at := d.SubBytes()
	for _, p := range d.Fields[:field] {
		at += p.planeBytes()
	}
	return at
}

func (p *BitField) planeBytes() int {
	if p.Share != 0 {
		return SubBlockK / p.Share * p.Bits / 8 * PanelWidth
	}
	return 64 * p.Bits
}

// Made says that the words of the last plane are not in the panel as they are used: they are made
// once for a sub-block, by the rules of shared bits and of parity.
func (d *Desc) Made() bool { return d.Fields[len(d.Fields)-1].Share != 0 || d.Subs == ParitySubs }

// The bits of a word of signs that parity leaves, and of all others.
const (
	ParityBits = 0xAA000000
	SignBits   = ^uint32(ParityBits)
)

// Place finds bits of four k, group g of a sub-block: where in the sub-block the words of the
// columns begin, and the bit in each byte.
func (d *Desc) Place(g, plane int) (at, bit int) {
	bits := d.Fields[plane].Bits
	groups := 8 / bits // in one word
	return d.plane(plane) + g/groups*64, g % groups * bits
}

// Word is word w of the plane of a bit field, column c of a packed sub-block, as it is used.
func (d *Desc) Word(sub []byte, field, w, c int) uint32 {
	plane := sub[d.plane(field):]
	if d.Fields[field].Share != 0 {
		return uint32(plane[c]) * 0x01010101
	}
	word := binary.LittleEndian.Uint32(plane[64*w+4*c:])
	if field > 0 && d.Subs == ParitySubs {
		word &= SignBits
		x := word ^ word>>16
		x ^= x >> 8
		x ^= x >> 1 // bit 2o is the parity of k 8o and the seven after it
		word |= x & 0x55 << 25
	}
	return word
}

// Stored is the number of element k of a packed sub-block, column c.
func (d *Desc) Stored(sub []byte, k, c int) (u uint8) {
	for i := range d.Fields {
		bits := d.Fields[i].Bits
		each := 32 / bits
		x := d.Word(sub, i, k/each, c) >> (8*(k%4) + k%each/4*bits)
		u |= uint8(x) & (1<<bits - 1) << d.Low(i)
	}
	return u
}

// PackedSubs is the scales of a packed sub-block, column c, as Scales takes them.
func (d *Desc) PackedSubs(sub []byte, c int) (s [2]uint8) {
	switch d.Subs {
	case OddSubs:
		return [2]uint8{sub[c]&15<<1 | 1, sub[c]>>4<<1 | 1}
	case ParitySubs:
		b := sub[d.plane(1)+4*c+3]
		return [2]uint8{b&2 | b&8>>1 | b&32>>2 | b&128>>3 | 1}
	}
	for i := range d.SubBytes() / PanelWidth {
		s[i] = sub[PanelWidth*i+c]
	}
	return s
}
