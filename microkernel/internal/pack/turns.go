package pack

import (
	"encoding/binary"

	"sandwich/microkernel/qtype"
)

// packTurns packs sixteen rows of blocks of any quantized type, turn by turn.
func packTurns(d *qtype.Desc, panel, src []byte, rowStride, columns, k int) {
	if columns < qtype.PanelWidth {
		clear(panel)
	}
	size := d.PanelBytes()
	for b := range k / d.Block {
		block := panel[b*size:][:size]
		for c := range columns {
			var t qtype.Turn
			raw := src[c*rowStride+b*d.Bytes:][:d.Bytes]
			for n := range d.Turns() {
				d.Read(&t, raw, n)
				d.Pack(block[d.HeadBytes()+n*d.TurnBytes():][:d.TurnBytes()], c, &t)
			}
			for h := range d.Halves {
				binary.LittleEndian.PutUint16(block[2*(qtype.PanelWidth*h+c):], t.Halves[h])
			}
		}
	}
}
