// Package pack brings rows of weights, as a file has them, into the panels that kernels read.
package pack

import (
	"slices"
	"unsafe"

	"sandwich/microkernel/qtype"
)

// Panel packs the rows of up to PanelWidth columns, rowStride bytes apart and k elements long, into
// a panel of the layout that microkernel.Layout documents. It writes all of the panel up to k. Two
// layouts are packed faster than sub-block by sub-block.
func Panel(d *qtype.Desc, panel, src []byte, rowStride, columns, k int) {
	switch {
	case d.Float == qtype.Single:
		packElements[uint32](panel, src, rowStride, columns, k)
	case d.Float == qtype.Half:
		packElements[uint16](panel, src, rowStride, columns, k)
	case d.Float == qtype.Brain:
		packPairs(panel, src, rowStride, columns, k)
	case d.Block == qtype.SubBlockK && d.Signed && d.Bytes == q8Row:
		packQ8(d, panel, src, rowStride, columns, k)
	case d.Block == qtype.SubBlockK && slices.Equal(d.Fields, q4Fields) && d.Bytes == q4Row:
		packQ4(d, panel, src, rowStride, columns, k)
	default:
		packSubBlocks(d, panel, src, rowStride, columns, k)
	}
}

// packTile is how many k of one row are moved before the next row's turn: sixteen rows of source
// lines and the lines they scatter to then stay in the first-level cache.
const packTile = 64

// packElements transposes rows of plain elements: panel[k][c] = src[c][k]. An element is moved in
// one bit field, which needs no alignment where kernels are generated, and elsewhere has that of
// its tensor.
func packElements[T uint16 | uint32](panel, src []byte, rowStride, columns, k int) {
	size := int(unsafe.Sizeof(T(0)))
	if columns < qtype.PanelWidth {
		clear(panel)
	}
	for k0 := 0; k0 < k; k0 += packTile {
		n := min(packTile, k-k0)
		for c := range columns {
			s := src[c*rowStride+size*k0:][:size*n]
			d := panel[size*(qtype.PanelWidth*k0+c):]
			for i := 0; i < len(s); i += size {
				_ = d[size-1]
				*(*T)(unsafe.Pointer(unsafe.SliceData(d))) = *(*T)(unsafe.Pointer(&s[i]))
				if len(d) > size*qtype.PanelWidth {
					d = d[size*qtype.PanelWidth:]
				}
			}
		}
	}
}

// packPairs transposes rows of 16-bit elements two at a time: panel[k/2][c] = src[c][k],
// src[c][k+1].
func packPairs(panel, src []byte, rowStride, columns, k int) {
	if k%2 == 0 {
		packElements[uint32](panel, src, rowStride, columns, k/2)
		return
	}
	packElements[uint32](panel[:32*(k-1)], src, rowStride, columns, k/2)
	last := panel[32*(k-1):][:64]
	clear(last)
	for c := range columns {
		copy(last[4*c:4*c+2], src[c*rowStride+2*(k-1):])
	}
}
