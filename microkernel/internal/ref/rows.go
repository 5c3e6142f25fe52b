package ref

import (
	"math"
	"unsafe"

	"sandwich/microkernel/qtype"
)

// Row is one k of a panel: sixteen columns.
type Row = [qtype.PanelWidth]float32

// Rows writes the exact float32 values of the elements [k0, k0+len(dst)) of a panel. k0 is a
// multiple of KStep or of a sub-block, and so is len(dst) unless it ends at K. It is the oracle of
// GEMM.Widen, and RunRef reads weights through it.
func Rows(t qtype.Type, panel unsafe.Pointer, k0 int, dst []Row) {
	src := unsafe.Add(panel, t.PanelOffset(k0))
	switch t {
	case qtype.F32:
		copy(dst, unsafe.Slice((*Row)(src), len(dst)))
	case qtype.F16:
		for i, row := range unsafe.Slice((*[qtype.PanelWidth]uint16)(src), len(dst)) {
			for c, h := range row {
				dst[i][c] = qtype.FloatFromHalf(h)
			}
		}
	case qtype.BF16:
		pairs := unsafe.Slice((*[qtype.PanelWidth][2]uint16)(src), (len(dst)+1)/2)
		for i := range dst {
			for c := range qtype.PanelWidth {
				dst[i][c] = math.Float32frombits(uint32(pairs[i/2][c][i%2]) << 16)
			}
		}
	default:
		for k := 0; k < len(dst); k += qtype.SubBlockK {
			subBlockAt(t, panel, k0+k).values(dst[k : k+qtype.SubBlockK])
		}
	}
}

// subBlockAt returns the sub-block of a quantized panel that begins at element k.
func subBlockAt(t qtype.Type, panel unsafe.Pointer, k int) packedSubBlock {
	d := t.Desc()
	block := unsafe.Slice((*byte)(unsafe.Add(panel, t.PanelOffset(k/d.Block*d.Block))), d.PanelBytes())
	return subBlockOf(t, block, k%d.Block/qtype.SubBlockK)
}
