package ref

import (
	"encoding/binary"
	"math"

	"sandwich/microkernel/qtype"
)

// Column writes the elements of column c of a panel from its first element, with the bits of
// dequantizing them from the file: Rows for one column, but fast.
func Column(t qtype.Type, panel []byte, c int, dst []float32) {
	switch d := t.Desc(); d.Float {
	case qtype.Single:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(panel[64*i+4*c:]))
		}
	case qtype.Half:
		for i := range dst {
			dst[i] = qtype.FloatFromHalf(binary.LittleEndian.Uint16(panel[32*i+2*c:]))
		}
	case qtype.Brain:
		for i := range dst {
			dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(panel[64*(i/2)+4*c+2*(i%2):])) << 16)
		}
	default:
		for at := 0; at < len(dst); at += d.Block {
			block := panel[at/d.Block*d.PanelBytes():][:d.PanelBytes()]
			for n := range d.SubBlocks() {
				subBlockOf(t, block, n).column(c, (*[qtype.SubBlockK]float32)(dst[at+n*qtype.SubBlockK:]))
			}
		}
	}
}

// column writes the weights of column c of the sub-block as the file format defines them: scale
// times number, so that a zero has the sign it has there.
func (b packedSubBlock) column(c int, dst *[qtype.SubBlockK]float32) {
	u := b.numbers(c)
	zero := int32(b.ZeroPoint)
	for k := 0; k < qtype.SubBlockK; k += b.Span() {
		scale, offset := b.scale(k, c)
		words, out := u[k/4:(k+b.Span())/4], dst[k:k+b.Span()]
		switch {
		case b.Codebook != nil:
			for i := range out {
				out[i] = float32(b.Codebook[words[i/4]>>(i%4*8)&15]) * scale
			}
		case b.Affine(): // the product is exact: fused or not, it rounds once
			for i := range out {
				out[i] = float32(int32(words[i/4]>>(i%4*8)&255))*scale + offset
			}
		default:
			for i := range out {
				out[i] = float32(int32(words[i/4]>>(i%4*8)&255)-zero) * scale
			}
		}
	}
}

// numbers returns the stored numbers of column c, four k per word.
func (b packedSubBlock) numbers(c int) (u [qtype.SubBlockK / 4]uint32) {
	for i, p := range b.Fields {
		mask := uint32(1<<p.Bits-1) * 0x01010101 // in each byte
		g, low := 0, b.Low(i)
		for w := range p.Bits {
			word := b.Word(b.packed, i, w, c)
			for shift := 0; shift < 8; shift += p.Bits {
				u[g%len(u)] |= word >> shift & mask << low
				g++
			}
		}
	}
	return u
}
