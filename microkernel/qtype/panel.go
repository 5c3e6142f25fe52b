package qtype

import "encoding/binary"

// PanelWidth is the number of columns (rows of the weight matrix) of one packed panel: one AVX-512
// vector.
const PanelWidth = 16

// A packed block of a quantized type consists of its scales, [16]float16 each, and a sub-block for
// each 32 k: the scales of the sub-block, [2][16] bytes if it has any, then a plane for each bit
// field of its numbers. A plane of b bits stores 32/b consecutive k of a column in one 32-bit word:
// bits b*p and up of byte i of word w of column c, at 64*w + 4*c + i, belong to k = 32/b*w + 4*p +
// i. Four consecutive k are thus bytes of one word for any number of bits, which is the order that
// integer dot products need.
//
// A plane whose bits four k share stores one byte per column, which is repeated in all four bytes
// of its word. In the plane of signs of ParitySubs, the last of every eight k makes the number of
// ones even and is not stored: bits 25, 27, 29 and 31 of the word store s/2 instead, low bit first.

// PanelBytes returns the length of one block of a packed panel, all columns.
func (d *Desc) PanelBytes() int { return d.packed }

// measure computes what Add stores in packed, since every product asks for the length of panels.
func (d *Desc) measure() int {
	if d.Block == 1 {
		return d.Bytes * PanelWidth
	}
	return d.HeadBytes() + d.SubBlocks()*d.SubBlockBytes()
}

// HeadBytes returns the number of bytes before the first sub-block of a block.
func (d *Desc) HeadBytes() int { return 2 * PanelWidth * len(d.BlockScales) }

// SubBytes returns the length of the scales at the front of a sub-block.
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

// SubBlockBytes returns the length of a sub-block.
func (d *Desc) SubBlockBytes() int { return d.plane(len(d.Fields)) }

// plane returns the offset in a sub-block of the plane of a bit field.
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

// Made reports whether the words of the last plane are not stored in the panel as they are used,
// but derived once per sub-block by the rules of shared bits and of parity.
func (d *Desc) Made() bool { return d.Fields[len(d.Fields)-1].Share != 0 || d.Subs == ParitySubs }

// ParityBits are the bits of a word of signs that parity implies; SignBits are all others.
const (
	ParityBits = 0xAA000000
	SignBits   = ^uint32(ParityBits)
)

// Place locates the bits of four k, group g of a sub-block: the offset in the sub-block of the
// words of the columns, and the bit in each byte.
func (d *Desc) Place(g, plane int) (at, bit int) {
	bits := d.Fields[plane].Bits
	groups := 8 / bits // in one word
	return d.plane(plane) + g/groups*64, g % groups * bits
}

// Word returns word w of the plane of a bit field, column c of a packed sub-block, as it is used.
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

// Stored returns the number of element k of a packed sub-block, column c.
func (d *Desc) Stored(sub []byte, k, c int) (u uint8) {
	for i := range d.Fields {
		bits := d.Fields[i].Bits
		each := 32 / bits
		x := d.Word(sub, i, k/each, c) >> (8*(k%4) + k%each/4*bits)
		u |= uint8(x) & (1<<bits - 1) << d.Low(i)
	}
	return u
}

// PackedSubs returns the scales of a packed sub-block, column c, as Scales takes them.
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
