package microkernel

import (
	"fmt"
	"sandwich/microkernel/internal/plain"
	"unsafe"
)

// Unpack writes the elements [k0, k1) of column n of a packed matrix as float32. k0 is a multiple of KStep, and k1 too unless
// it is K. It is slow, for tests and for looking at a few weights.
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
	panel := unsafe.Pointer(&packed[n/PanelWidth*l.PanelStride()])
	var rows [32]plain.Row
	for k := k0; k < k1; k += len(rows) {
		part := rows[:min(len(rows), k1-k)]
		plain.Rows(l.Type, panel, k, part)
		for i := range part {
			dst[k-k0+i] = part[i][n%PanelWidth]
		}
	}
	return nil
}
