package plain

import (
	"encoding/binary"

	"sandwich/microkernel/qtype"
)

// blockTurn is one turn of one packed block, for plain Go.
type blockTurn struct {
	*qtype.Desc
	head []byte
	turn []byte
}

// turnOf finds turn n of a packed block.
func turnOf(t qtype.Type, block []byte, n int) blockTurn {
	d := t.Desc()
	return blockTurn{d, block[:d.HeadBytes()], block[d.HeadBytes()+n*d.TurnBytes():][:d.TurnBytes()]}
}

// scale is the scale and the offset of column c, for element k of the turn. Both are exact.
func (b blockTurn) scale(k, c int) (scale, offset float32) {
	var halves [2]float32
	for n := range b.Halves {
		halves[n] = b.Half(binary.LittleEndian.Uint16(b.head[2*(qtype.PanelWidth*n+c):]), n)
	}
	return b.Scales(halves, b.PackedSubs(b.turn, c), k)
}

// integer is the whole number that element k, column c stands for before scale and offset.
func (b blockTurn) integer(k, c int) int { return b.Integer(b.Stored(b.turn, k, c)) }

// values writes the exact weights of the turn. They are computed as the generated code does it, one
// FMA whose operands are exact, so that a scale that is not finite gives NaN in both.
func (b blockTurn) values(dst []Row) {
	one := float32(uint32(1) << b.Bits())
	for c := range qtype.PanelWidth {
		var scale, offset float32
		for k := range dst {
			if k%b.Span() == 0 {
				if scale, offset = b.scale(k, c); !b.Affine() {
					offset = -((one + float32(b.ZeroPoint)) * scale)
				}
			}
			u := b.Stored(b.turn, k, c)
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
