package microkernel

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"
)

// panelRow is one k of a panel: sixteen columns.
type panelRow = [PanelWidth]float32

// dequantize is the exact value of a quantized weight from its stored unsigned form: (x - zero) * scale. It is written as the
// generated code computes it, one FMA whose operands are exact, so that a scale that is not finite gives NaN in both.
func dequantize(x, zero uint8, scale float32) float32 {
	return FMA32(float32(uint32(x)+1<<15), scale, -(float32(1<<15+uint32(zero)) * scale))
}

// unpackRows writes the exact float32 values of the elements [k0, k0+len(dst)) of a panel. k0 is a multiple of KStep; len(dst)
// is too, or ends at K. It is the oracle of Widen and what RunRef reads weights through.
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
	case Q8_0:
		for b := 0; b < len(dst); b += 32 {
			unpackQ8(unsafe.Slice((*byte)(unsafe.Add(src, PanelOffset(t, b))), weightInfos[t].panelBytes), dst[b:b+32])
		}
	case Q4_0:
		for b := 0; b < len(dst); b += 32 {
			unpackQ4(unsafe.Slice((*byte)(unsafe.Add(src, PanelOffset(t, b))), weightInfos[t].panelBytes), dst[b:b+32])
		}
	}
}

// blockScale is the scale of column c of a quantized block.
func blockScale(block []byte, c int) float32 {
	return floatFromHalf(binary.LittleEndian.Uint16(block[2*c:]))
}

func unpackQ8(block []byte, dst []panelRow) {
	for c := range PanelWidth {
		scale := blockScale(block, c)
		for k := range 32 {
			dst[k][c] = dequantize(quantQ8(block, k, c), 128, scale)
		}
	}
}

func unpackQ4(block []byte, dst []panelRow) {
	for c := range PanelWidth {
		scale := blockScale(block, c)
		for k := range 32 {
			dst[k][c] = dequantize(quantQ4(block, k, c), 8, scale)
		}
	}
}

// quantQ8 is the stored number of element k, column c of a q8_0 block: the value plus 128.
func quantQ8(block []byte, k, c int) uint8 { return block[32+k/4*64+c*4+k%4] }

// quantQ4 is the stored number of element k, column c of a q4_0 block: the value plus 8.
func quantQ4(block []byte, k, c int) uint8 {
	b := block[32+k/8*64+c*4+k%4]
	if k%8 >= 4 {
		return b >> 4
	}
	return b & 15
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
