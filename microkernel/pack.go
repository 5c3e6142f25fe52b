package microkernel

import (
	"fmt"

	"sandwich/microkernel/internal/pack"
	"sandwich/microkernel/internal/ref"
)

// Pack packs rows [n0, n1) of a weight matrix into dst, which holds the whole packed matrix of
// l.Bytes() bytes. raw begins at the first element of row n0, and its rows are rowStride bytes
// apart (0: dense); to pack a cut along k, offset raw and keep the stride of the whole tensor. n0
// is a multiple of PanelWidth, and so is n1 unless it is N: different calls then write different
// panels and may run concurrently. Columns beyond N become zeros.
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
		return fmt.Errorf("pack: rows [%d,%d) are invalid: they must start and end at multiples of %d, or end at %d",
			n0, n1, PanelWidth, l.N)
	case len(dst) < l.Bytes():
		return fmt.Errorf("pack: destination of %d bytes, the packed matrix has %d", len(dst), l.Bytes())
	case rowStride < row || len(raw) < (n1-n0-1)*rowStride+row:
		return fmt.Errorf("pack: %d bytes are too few for %d rows of %d bytes, %d apart", len(raw), n1-n0,
			row, rowStride)
	}
	stride, used, packer := l.PanelStride(), l.panelBytes(l.K), pack.For(l.Type.Desc())
	defer packer.Done()
	for n := n0; n < n1; n += PanelWidth {
		panel := dst[n/PanelWidth*stride:][:stride]
		src := raw[(n-n0)*rowStride:]
		columns := min(PanelWidth, n1-n)
		packer.Panel(panel[:used], src, rowStride, columns, l.K)
		clear(panel[used:])
	}
	return nil
}

// Unpack writes the elements [k0, k1) of column n of a packed matrix, row n of the tensor, as
// float32, with the bits of dequantizing that row. k0 is a multiple of KStep, and so is k1 unless
// it is K. Forwards use it to read token embeddings if the output matrix is also the embedding.
func Unpack(dst []float32, packed []byte, l Layout, n, k0, k1 int) error {
	if err := l.Validate(); err != nil {
		return err
	}
	step := l.Type.KStep()
	if n < 0 || n >= l.N || k0 < 0 || k0 > k1 || k1 > l.K || k0%step != 0 || k1%step != 0 && k1 != l.K {
		return fmt.Errorf("column %d, k %d to %d is not a cut of a %d x %d %s matrix", n, k0, k1, l.N, l.K, l.Type)
	}
	if len(packed) < l.Bytes() || len(dst) < k1-k0 {
		return fmt.Errorf("unpack: %d bytes of %d, destination for %d of %d values",
			len(packed), l.Bytes(), len(dst), k1-k0)
	}
	panel := packed[n/PanelWidth*l.PanelStride():][:l.PanelStride()]
	ref.Column(l.Type, panel[PanelOffset(l.Type, k0):], n%PanelWidth, dst[:k1-k0])
	return nil
}
