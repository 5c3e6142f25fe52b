package qtype

import "encoding/binary"

// PanelWidth is the number of columns (rows of the weight matrix) of one packed panel: one AVX-512
// vector.
const PanelWidth = 16

// A packed block of a quantized type holds its halves, [16]float16 each, then for each 32 k a turn:
// the scales of the turn, [2][16] bytes where there are any, then a plane for each piece of its
// numbers. A plane of b bits holds 32/b consecutive k of a column in one 32-bit word: bits b*p and
// up of byte i of word w of column c, at 64*w + 4*c + i, belong to k = 32/b*w + 4*p + i. Four
// consecutive k are thus bytes of one word, as integer dot products want them, whatever the bits.

// PanelBytes is the length of one block of a packed panel, all columns.
func (d *Desc) PanelBytes() int {
	if d.Block == 1 {
		return d.Bytes * PanelWidth
	}
	return d.HeadBytes() + d.Turns()*d.TurnBytes()
}

// HeadBytes is what stands before the first turn of a block.
func (d *Desc) HeadBytes() int { return 2 * PanelWidth * len(d.Halves) }

// SubBytes is the scales at the front of a turn.
func (d *Desc) SubBytes() int {
	if d.Subs == NoSubs {
		return 0
	}
	return 2 * PanelWidth
}

// TurnBytes is the length of a turn.
func (d *Desc) TurnBytes() int { return d.SubBytes() + 64*d.Bits() }

// Place finds bits of four k, group g of a turn: where in the turn the words of the columns begin,
// and the bit in each byte.
func (d *Desc) Place(g, plane int) (at, bit int) {
	at = d.SubBytes()
	for _, p := range d.Pieces[:plane] {
		at += 64 * p.Bits
	}
	bits := d.Pieces[plane].Bits
	groups := 8 / bits // in one word
	return at + g/groups*64, g % groups * bits
}

// Pack writes the scales and the planes of one turn of column c.
func (d *Desc) Pack(turn []byte, c int, t *Turn) {
	if d.Subs != NoSubs {
		turn[c], turn[PanelWidth+c] = t.Subs[0], t.Subs[1]
	}
	plane, low := turn[d.SubBytes():], 0
	for i := range d.Pieces {
		bits := d.Pieces[i].Bits
		mask := uint32(1<<bits-1) * 0x01010101
		groups := 8 / bits // of four k in one word
		for w := range bits {
			word := uint32(0)
			for p := range groups {
				word |= binary.LittleEndian.Uint32(t.U[4*(w*groups+p):]) >> low & mask << (p * bits)
			}
			binary.LittleEndian.PutUint32(plane[64*w+4*c:], word)
		}
		plane, low = plane[64*bits:], low+bits
	}
}

// Stored is the number of element k of a packed turn, column c.
func (d *Desc) Stored(turn []byte, k, c int) uint8 {
	plane := turn[d.SubBytes():]
	u, low := uint8(0), 0
	for i := range d.Pieces {
		bits := d.Pieces[i].Bits
		each := 32 / bits
		x := plane[k/each*64+c*4+k%4] >> (k % each / 4 * bits)
		u |= x & (1<<bits - 1) << low
		low += bits
		plane = plane[64*bits:]
	}
	return u
}
