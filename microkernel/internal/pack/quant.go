package pack

import (
	"encoding/binary"

	"sandwich/microkernel/qtype"
)

const (
	q8Row = 34 // bytes of a q8_0 block in a row: scale, 32 int8
	q4Row = 18 // bytes of a q4_0 block in a row: scale, 32 nibbles, k and k+16 in one byte
)

// q4Fields is how q4Row is laid out behind its scale.
var q4Fields = []qtype.BitField{{At: 2, Bits: 4, Run: 16}}

// packQ8 packs sixteen rows of q8_0 blocks.
func packQ8(d *qtype.Desc, panel, src []byte, rowStride, columns, k int) {
	if columns < qtype.PanelWidth {
		clear(panel)
	}
	const flip = 0x8080808080808080 // adding 128 to an int8 is flipping its sign bit
	out := d.PanelBytes()
	for b := range k / 32 {
		block := panel[b*out:][:out:out]
		for c := range columns {
			s := src[c*rowStride+b*q8Row:][:q8Row:q8Row]
			block[2*c], block[2*c+1] = s[0], s[1]
			to := block[32+4*c:][:7*64+4]
			put8(to[:64+4], binary.LittleEndian.Uint64(s[2:])^flip)
			put8(to[128:128+64+4], binary.LittleEndian.Uint64(s[10:])^flip)
			put8(to[256:256+64+4], binary.LittleEndian.Uint64(s[18:])^flip)
			put8(to[384:], binary.LittleEndian.Uint64(s[26:])^flip)
		}
	}
}

// put8 writes eight bytes of a column to two lines that follow each other.
func put8(to []byte, w uint64) {
	binary.LittleEndian.PutUint32(to, uint32(w))
	binary.LittleEndian.PutUint32(to[64:], uint32(w>>32))
}

// packQ4 packs sixteen rows of q4_0 blocks. A raw byte holds k in its low and k+16 in its high
// nibble; a packed one holds k and k+4, so that a 32-bit word is eight consecutive k.
func packQ4(d *qtype.Desc, panel, src []byte, rowStride, columns, k int) {
	if columns < qtype.PanelWidth {
		clear(panel)
	}
	const nibbles = 0x0F0F0F0F
	out := d.PanelBytes()
	for b := range k / 32 {
		block := panel[b*out:][:out:out]
		for c := range columns {
			s := src[c*rowStride+b*q4Row:][:q4Row:q4Row]
			block[2*c], block[2*c+1] = s[0], s[1]
			to := block[32+4*c:]
			for g := range 2 { // eight raw bytes: k 8g to 8g+7 in the low nibbles, 16 above in the high ones
				w := binary.LittleEndian.Uint64(s[2+8*g:])
				near, far := uint32(w), uint32(w>>32)
				binary.LittleEndian.PutUint32(to[64*g:], near&nibbles|far&nibbles<<4)
				binary.LittleEndian.PutUint32(to[64*g+128:], near>>4&nibbles|far&^nibbles)
			}
		}
	}
}
