package pack

import (
	"encoding/binary"

	"sandwich/microkernel/qtype"
)

// packSubBlocks packs sixteen rows of blocks of any quantized type, sub-block by sub-block.
func packSubBlocks(d *qtype.Desc, panel, src []byte, rowStride, columns, k int) {
	if columns < qtype.PanelWidth {
		clear(panel)
	}
	size := d.PanelBytes()
	for b := range k / d.Block {
		block := panel[b*size:][:size]
		for c := range columns {
			var t qtype.SubBlock
			raw := src[c*rowStride+b*d.Bytes:][:d.Bytes]
			for n := range d.SubBlocks() {
				d.Read(&t, raw, n)
				d.Pack(block[d.HeadBytes()+n*d.SubBlockBytes():][:d.SubBlockBytes()], c, &t)
			}
			for h := range d.BlockScales {
				binary.LittleEndian.PutUint16(block[2*(qtype.PanelWidth*h+c):], t.BlockScales[h])
			}
		}
	}
}
