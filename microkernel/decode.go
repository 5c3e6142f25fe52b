package microkernel

import (
	"fmt"
	"math"
	"unsafe"
)

// panelRow is one k of a panel: sixteen columns.
type panelRow = [PanelWidth]float32

// unpackRows writes the exact float32 values of the elements [k0, k0+len(dst)) of a panel. k0 is a multiple of KStep or of a turn, and
// len(dst) too, or it ends at K. It is the oracle of Widen and what RunRef reads weights through.
func unpackRows(t WeightType, panel unsafe.Pointer, k0 int, dst []panelRow) {
	src := unsafe.Add(panel, PanelOffset(t, k0))
	switch t {
	case F32:
		copy(dst, unsafe.Slice((*panelRow)(src), len(dst)))
	case F16:
		for i, row := range unsafe.Slice((*[PanelWidth]uint16)(src), len(dst)) {
			for c, h := range row {
				dst[i][c] = floatFromHalf(h)
			}
		}
	case BF16:
		pairs := unsafe.Slice((*[PanelWidth][2]uint16)(src), (len(dst)+1)/2)
		for i := range dst {
			for c := range PanelWidth {
				dst[i][c] = math.Float32frombits(uint32(pairs[i/2][c][i%2]) << 16)
			}
		}
	default:
		for k := 0; k < len(dst); k += turnK {
			turnAt(t, panel, k0+k).values(dst[k : k+turnK])
		}
	}
}

// turnAt is the turn of a quantized panel that begins at element k.
func turnAt(t WeightType, panel unsafe.Pointer, k int) blockTurn {
	d := t.Desc()
	block := unsafe.Slice((*byte)(unsafe.Add(panel, t.PanelOffset(k/d.Block*d.Block))), d.PanelBytes())
	return turnOf(t, block, k%d.Block/turnK)
}

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
	var rows [32]panelRow
	for k := k0; k < k1; k += len(rows) {
		part := rows[:min(len(rows), k1-k)]
		unpackRows(l.Type, panel, k, part)
		for i := range part {
			dst[k-k0+i] = part[i][n%PanelWidth]
		}
	}
	return nil
}
