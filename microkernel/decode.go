package microkernel

import (
	"fmt"

	"sandwich/microkernel/internal/plain"
)

// Unpack writes the elements [k0, k1) of column n of a packed matrix, row n of the tensor, as
// float32: the bits that dequantizing that row gives. k0 is a multiple of KStep, and k1 too unless
// it is K. Where the head of a model is its embedding, forwards read the rows of their tokens by
// it.
func Unpack(dst []float32, packed []byte, l Layout, n, k0, k1 int) error {
	if err := l.Validate(); err != nil {
		return err
	}
	step := l.Type.KStep()
	if n < 0 || n >= l.N || k0 < 0 || k0 > k1 || k1 > l.K || k0%step != 0 || k1%step != 0 && k1 != l.K {
		return fmt.Errorf("column %d, k %d to %d is not a cut of a %d x %d %s matrix", n, k0, k1, l.N, l.K, l.Type)
	}
	if len(packed) < l.Bytes() || len(dst) < k1-k0 {
		return fmt.Errorf("unpack: %d bytes of %d, room for %d of %d values", len(packed), l.Bytes(), len(dst), k1-k0)
	}
	panel := packed[n/PanelWidth*l.PanelStride():][:l.PanelStride()]
	plain.Column(l.Type, panel[PanelOffset(l.Type, k0):], n%PanelWidth, dst[:k1-k0])
	return nil
}
