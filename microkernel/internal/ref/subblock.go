package ref

import (
	"encoding/binary"

	"sandwich/microkernel/qtype"
)

// packedSubBlock is one sub-block of a packed block.
type packedSubBlock struct {
	*qtype.Desc
	head   []byte
	packed []byte
}

// subBlockOf returns sub-block n of a packed block.
func subBlockOf(t qtype.Type, block []byte, n int) packedSubBlock {
	d := t.Desc()
	return packedSubBlock{d, block[:d.HeadBytes()], block[d.HeadBytes()+n*d.SubBlockBytes():][:d.SubBlockBytes()]}
}

// scale returns the scale and the offset of column c for element k of the sub-block. Both are
// exact.
func (b packedSubBlock) scale(k, c int) (scale, offset float32) {
	return b.Scales(b.blockScales(c), b.PackedSubs(b.packed, c), k)
}

// blockScales returns the scales of the block of column c, multiplied by the unit.
func (b packedSubBlock) blockScales(c int) (scales [2]float32) {
	for n := range b.BlockScales {
		scales[n] = b.BlockScale(binary.LittleEndian.Uint16(b.head[2*(qtype.PanelWidth*n+c):]), n)
	}
	return scales
}

// integer returns the integer that element k, column c represents before scale and offset.
func (b packedSubBlock) integer(k, c int) int { return b.Integer(b.Stored(b.packed, k, c)) }

// values writes the exact weights of the sub-block. It computes them as generated code does, by
// one FMA with exact operands, so that a scale that is not finite gives NaN in both.
func (b packedSubBlock) values(dst []Row) {
	one := float32(uint32(1) << b.Bits())
	for c := range qtype.PanelWidth {
		var scale, offset float32
		for k := range dst {
			if k%b.Span() == 0 {
				if scale, offset = b.scale(k, c); !b.Affine() {
					offset = -((one + float32(b.ZeroPoint)) * scale)
				}
			}
			u := b.Stored(b.packed, k, c)
			switch {
			case b.Codebook != nil:
				dst[k][c] = float32(b.Codebook[u]) * scale
			case b.Affine():
				dst[k][c] = FMA32(float32(u), scale, offset)
			default:
				dst[k][c] = FMA32(one+float32(u), scale, offset)
			}
		}
	}
}
