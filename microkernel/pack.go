package microkernel

import (
	"fmt"
	"slices"
	"unsafe"

	"sandwich/microkernel/qtype"
)

// Pack packs rows [n0, n1) of a weight matrix into dst, which holds the whole packed matrix of
// l.Bytes() bytes. raw begins at the first element of row n0 and its rows are rowStride bytes apart
// (0: dense), so that a cut along k is packed by offsetting raw and keeping the stride of the whole
// tensor. n0 is a multiple of PanelWidth, and n1 too unless it is N: different calls then write
// different panels, and may run on different threads. Columns beyond N become zeros.
func Pack(dst []byte, l Layout, n0, n1 int, raw []byte, rowStride int) error {
	if err := l.Validate(); err != nil {
		return err
	}
	row := l.Type.RowBytes(l.K)
	if rowStride == 0 {
		rowStride = row
	}
	switch {
	case n0 < 0 || n0 >= n1 || n1 > l.N || n0%PanelWidth != 0 || n1%PanelWidth != 0 && n1 != l.N:
		return fmt.Errorf("pack: rows %d to %d are not whole panels of %d rows", n0, n1, l.N)
	case len(dst) < l.Bytes():
		return fmt.Errorf("pack: destination of %d bytes, the packed matrix has %d", len(dst), l.Bytes())
	case rowStride < row || len(raw) < (n1-n0-1)*rowStride+row:
		return fmt.Errorf("pack: %d bytes are too few for %d rows of %d bytes, %d apart", len(raw), n1-n0,
			row, rowStride)
	}
	stride := l.PanelStride()
	for n := n0; n < n1; n += PanelWidth {
		panel := dst[n/PanelWidth*stride:][:stride]
		src := raw[(n-n0)*rowStride:]
		columns := min(PanelWidth, n1-n)
		pack(l.Type.Desc(), panel, src, rowStride, columns, l.K)
		clear(panel[l.panelBytes(l.K):])
	}
	return nil
}

// pack packs up to sixteen rows into a panel. Two layouts are packed faster than turn by turn.
func pack(d *qtype.Desc, panel, src []byte, rowStride, columns, k int) {
	switch {
	case d.Float == qtype.Single:
		packElements[uint32](panel, src, rowStride, columns, k)
	case d.Float == qtype.Half:
		packElements[uint16](panel, src, rowStride, columns, k)
	case d.Float == qtype.Brain:
		packPairs(panel, src, rowStride, columns, k)
	case d.Block == turnK && d.Signed && d.Bytes == q8Row:
		packQ8(d, panel, src, rowStride, columns, k)
	case d.Block == turnK && slices.Equal(d.Pieces, q4Pieces) && d.Bytes == q4Row:
		packQ4(d, panel, src, rowStride, columns, k)
	default:
		packTurns(d, panel, src, rowStride, columns, k)
	}
}

// packTile is how many k of one row are moved before the next row's turn: sixteen rows of source
// lines and the lines they scatter to then stay in the first-level cache.
const packTile = 64

// packElements transposes rows of plain elements: panel[k][c] = src[c][k]. An element is moved in
// one piece, which needs no alignment where kernels are generated, and elsewhere has that of its
// tensor.
func packElements[T uint16 | uint32](panel, src []byte, rowStride, columns, k int) {
	size := int(unsafe.Sizeof(T(0)))
	if columns < PanelWidth {
		clear(panel)
	}
	for k0 := 0; k0 < k; k0 += packTile {
		n := min(packTile, k-k0)
		for c := range columns {
			s := src[c*rowStride+size*k0:][:size*n]
			d := panel[size*(PanelWidth*k0+c):]
			for i := 0; i < len(s); i += size {
				_ = d[size-1]
				*(*T)(unsafe.Pointer(unsafe.SliceData(d))) = *(*T)(unsafe.Pointer(&s[i]))
				if len(d) > size*PanelWidth {
					d = d[size*PanelWidth:]
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
