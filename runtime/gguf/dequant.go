package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Dequantize converts the whole blocks in src, of type t, to float32. len(dst) must be the elements that src holds.
//
// The result is exact, not merely close: every product of block scale, sub-block scale and quant fits float32 without rounding, and a type
// with an offset rounds once, in the subtraction. So neither the order of the operations nor a fused multiply-add changes a value; the scales are
// multiplied first only for the sign of zeros.
//
// Callers: the embedding lookup (one row), the weight packers' oracle, and tests.
func Dequantize(dst []float32, t Type, src []byte) error {
	blocks, err := checkBlocks("dequantize", t, len(dst), len(src))
	if err != nil {
		return err
	}
	switch t {
	case F32:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
		}
		return nil
	case F16:
		for i := range dst {
			dst[i] = F16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
		}
		return nil
	case BF16:
		for i := range dst {
			dst[i] = BF16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
		}
		return nil
	}
	one := blockReaders[t]
	elems, bytes := t.Block()
	for b := range blocks {
		one(dst[b*elems:(b+1)*elems], src[b*bytes:(b+1)*bytes])
	}
	return nil
}

// checkBlocks returns how many blocks of t are in n elements and size bytes, which must agree.
func checkBlocks(verb string, t Type, n, size int) (int, error) {
	elems, bytes := t.Block()
	if elems == 0 {
		return 0, fmt.Errorf("cannot %s type %s: it is not supported", verb, t)
	}
	if n%elems != 0 || size%bytes != 0 || n/elems != size/bytes {
		return 0, fmt.Errorf("cannot %s %s: %d elements in %d bytes are not the same number of whole blocks (%d elements in %d bytes each)", verb, t, n, size, elems, bytes)
	}
	return n / elems, nil
}

// blockReaders holds, for each block type, the function that converts one block.
var blockReaders = map[Type]func(dst []float32, b []byte){
	Q4_0: readQ4_0, Q4_1: readQ4_1, Q5_0: readQ5_0, Q5_1: readQ5_1, Q8_0: readQ8_0, IQ4_NL: readIQ4NL,
	Q2_K: readQ2K, Q3_K: readQ3K, Q4_K: readQ4K, Q5_K: readQ5K, Q6_K: readQ6K,
}

// half reads the f16 at the front of b.
func half(b []byte) float32 { return F16ToF32(binary.LittleEndian.Uint16(b)) }

// In the 32-element types, byte j of the quants holds element j in its low and element j+16 in its high nibble.

// readQ4_0: f16 d, 16 bytes of quants. x = d (q - 8).
func readQ4_0(dst []float32, b []byte) {
	d, qs, dst := half(b), b[2:18], dst[:32]
	for j, q := range qs {
		dst[j] = float32(int(q&15)-8) * d
		dst[j+16] = float32(int(q>>4)-8) * d
	}
}

// readQ4_1: f16 d, f16 m, 16 bytes of quants. x = d q + m.
func readQ4_1(dst []float32, b []byte) {
	d, m, qs, dst := half(b), half(b[2:]), b[4:20], dst[:32]
	for j, q := range qs {
		dst[j] = float32(q&15)*d + m
		dst[j+16] = float32(q>>4)*d + m
	}
}

// readQ5_0: f16 d, 32 fifth bits, 16 bytes of low nibbles. x = d (q - 16).
func readQ5_0(dst []float32, b []byte) {
	d, high, qs, dst := half(b), binary.LittleEndian.Uint32(b[2:]), b[6:22], dst[:32]
	for j, q := range qs {
		dst[j] = float32(int(uint32(q&15)|high>>j<<4&16)-16) * d
		dst[j+16] = float32(int(uint32(q>>4)|high>>(j+16)<<4&16)-16) * d
	}
}

// readQ5_1: f16 d, f16 m, 32 fifth bits, 16 bytes of low nibbles. x = d q + m.
func readQ5_1(dst []float32, b []byte) {
	d, m, high, qs, dst := half(b), half(b[2:]), binary.LittleEndian.Uint32(b[4:]), b[8:24], dst[:32]
	for j, q := range qs {
		dst[j] = float32(uint32(q&15)|high>>j<<4&16)*d + m
		dst[j+16] = float32(uint32(q>>4)|high>>(j+16)<<4&16)*d + m
	}
}

// readQ8_0: f16 d, 32 signed bytes. x = d q.
func readQ8_0(dst []float32, b []byte) {
	d, qs, dst := half(b), b[2:34], dst[:32]
	for j, q := range qs {
		dst[j] = float32(int8(q)) * d
	}
}

// levelsIQ4NL are the sixteen values that an iq4_nl quant stands for.
var levelsIQ4NL = [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// readIQ4NL: f16 d, 16 bytes of quants. x = d level[q].
func readIQ4NL(dst []float32, b []byte) {
	d, qs, dst := half(b), b[2:18], dst[:32]
	for j, q := range qs {
		dst[j] = d * float32(levelsIQ4NL[q&15])
		dst[j+16] = d * float32(levelsIQ4NL[q>>4])
	}
}
