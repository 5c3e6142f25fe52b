package gguf

import (
	"encoding/binary"
	"fmt"
	"math"

	"sandwich/microkernel/qtype"
)

// Dequantize converts the whole blocks in src, of type t, to float32. len(dst) must be the elements
// that src holds.
//
// The result is exact, not merely close: every product of block scale, sub-block scale and quant
// fits float32 without rounding, and a type with an offset rounds once, in the subtraction. So
// neither the order of the operations nor a fused multiply-add changes a value; the scales are
// multiplied first only for the sign of zeros.
//
// Callers: the embedding lookup (one row), the weight packers' oracle, and tests.
func Dequantize(dst []float32, t Type, src []byte) error {
	blocks, err := checkBlocks("dequantize", t, len(dst), len(src))
	if err != nil {
		return err
	}
	d := t.Desc()
	switch d.Float {
	case qtype.Single:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
		}
	case qtype.Half:
		for i := range dst {
			dst[i] = f16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
		}
	case qtype.Brain:
		for i := range dst {
			dst[i] = bf16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
		}
	default:
		for b := range blocks {
			readBlock(d, dst[b*d.Block:(b+1)*d.Block], src[b*d.Bytes:(b+1)*d.Bytes])
		}
	}
	return nil
}

// readBlock converts one block of numbers.
func readBlock(d *qtype.Desc, dst []float32, block []byte) {
	var t qtype.SubBlock
	span := d.Span()
	for n := range d.SubBlocks() {
		d.Read(&t, block, n)
		scales := [2]float32{d.BlockScale(t.BlockScales[0], 0), d.BlockScale(t.BlockScales[1], 1)}
		for k0 := 0; k0 < qtype.SubBlockK; k0 += span {
			scale, offset := d.Scales(scales, t.Subs, k0)
			out, u := dst[n*qtype.SubBlockK+k0:][:span], t.U[k0:]
			for k := range out {
				x := float32(d.Integer(u[k])) * scale
				if d.Affine() {
					x += offset // adding no offset would lose the sign of a zero
				}
				out[k] = x
			}
		}
	}
}

// checkBlocks returns how many blocks of t are in n elements and size bytes, which must agree.
func checkBlocks(verb string, t Type, n, size int) (int, error) {
	elems, bytes := t.Block()
	if elems == 0 {
		return 0, fmt.Errorf("cannot %s type %s: it is not supported", verb, t)
	}
	if n%elems != 0 || size%bytes != 0 || n/elems != size/bytes {
		return 0, fmt.Errorf("cannot %s %s: %d elements in %d bytes are not the same number of whole blocks (%d "+
			"elements in %d bytes each)", verb, t, n, size, elems, bytes)
	}
	return n / elems, nil
}
