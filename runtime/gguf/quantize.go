package gguf

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Quantize converts float32 values to whole blocks of type t. len(src) must be the elements that dst holds; values must be finite.
//
// The 32-element types round like the reference quantizer of ggml. The K types use plain least-range scales, without its search over
// candidates: valid blocks, a little less accurate. This is for `model synth` and tests, not for quantizing trained models. Equal input gives equal
// bytes on every platform: products are rounded before they are added.
func Quantize(dst []byte, t Type, src []float32) error {
	blocks, err := checkBlocks("quantize", t, len(src), len(dst))
	if err != nil {
		return err
	}
	switch t {
	case F32:
		for i, x := range src {
			binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(x))
		}
		return nil
	case F16:
		for i, x := range src {
			binary.LittleEndian.PutUint16(dst[2*i:], F32ToF16(x))
		}
		return nil
	case BF16:
		for i, x := range src {
			binary.LittleEndian.PutUint16(dst[2*i:], F32ToBF16(x))
		}
		return nil
	}
	one := blockWriters[t]
	elems, bytes := t.Block()
	for b := range blocks {
		one(dst[b*bytes:(b+1)*bytes], src[b*elems:(b+1)*elems])
	}
	return nil
}

// blockWriters holds, for each block type, the function that converts one block. It writes every byte of the block.
var blockWriters = map[Type]func(b []byte, src []float32){
	Q4_0: writeQ4_0, Q4_1: writeQ4_1, Q5_0: writeQ5_0, Q5_1: writeQ5_1, Q8_0: writeQ8_0, IQ4_NL: writeIQ4NL,
	Q2_K: writeQ2K, Q3_K: writeQ3K, Q4_K: writeQ4K, Q5_K: writeQ5K, Q6_K: writeQ6K,
}

// putHalf writes x as f16 to the front of b and returns the value that a reader will see.
func putHalf(b []byte, x float32) float32 {
	h := F32ToF16(x)
	binary.LittleEndian.PutUint16(b, h)
	return F16ToF32(h)
}

// inverse returns 1/d, or 0 for 0, so that a block of zeros quantizes to zeros.
func inverse(d float32) float32 {
	if d == 0 {
		return 0
	}
	return 1 / d
}

// nearest rounds x to the nearest integer and clamps it to [lo, hi].
func nearest(x float32, lo, hi int) int {
	// Clamping first keeps the conversion inside int whatever x is. Adding a half and truncating needs a positive number.
	const bias = 1 << 9
	if !(x > float32(lo)) {
		return lo
	}
	if x > float32(hi) {
		return hi
	}
	// The conversion forbids fusing the caller's product into the sum.
	return int(float32(x)+(bias+0.5)) - bias
}

// extreme returns the value of largest magnitude, with its sign.
func extreme(src []float32) float32 {
	// The bits rotated left by one order values by magnitude, the sign last: a maximum without unpredictable branches.
	var most uint32
	for _, x := range src {
		most = max(most, bits.RotateLeft32(math.Float32bits(x), 1))
	}
	return math.Float32frombits(bits.RotateLeft32(most, -1))
}

// span returns the smallest and the largest value.
func span(src []float32) (lo, hi float32) {
	lo, hi = src[0], src[0]
	for _, x := range src {
		lo, hi = min(lo, x), max(hi, x)
	}
	return lo, hi
}

func writeQ8_0(b []byte, src []float32) {
	d := float32(math.Abs(float64(extreme(src)))) / 127
	putHalf(b, d)
	inv, qs := inverse(d), b[2:34]
	for j, x := range src[:32] {
		qs[j] = byte(int8(nearest(x*inv, -127, 127)))
	}
}

// writeSigned writes the symmetric types: the extreme value takes the one quant that has no mirror image, -levels/2.
func writeSigned(b []byte, src []float32, levels int) (q [32]byte) {
	d := extreme(src) / float32(-levels/2)
	putHalf(b, d)
	inv := inverse(d)
	for j, x := range src[:32] {
		q[j] = byte(nearest(x*inv, -levels/2, levels/2-1) + levels/2)
	}
	return q
}

// writeOffset writes the types with a minimum: d and m at the front of b.
func writeOffset(b []byte, src []float32, levels int) (q [32]byte) {
	lo, hi := span(src)
	d := (hi - lo) / float32(levels-1)
	putHalf(b, d)
	putHalf(b[2:], lo)
	inv := inverse(d)
	for j, x := range src[:32] {
		q[j] = byte(nearest((x-lo)*inv, 0, levels-1))
	}
	return q
}

// putNibbles packs 32 quants: element j in the low, element j+16 in the high nibble of byte j.
func putNibbles(b []byte, q [32]byte) {
	for j := range 16 {
		b[j] = q[j]&15 | q[j+16]&15<<4
	}
}

// putFifth packs the fifth bits of 32 quants.
func putFifth(b []byte, q [32]byte) {
	var high uint32
	for j, v := range q {
		high |= uint32(v>>4&1) << j
	}
	binary.LittleEndian.PutUint32(b, high)
}

func writeQ4_0(b []byte, src []float32) { putNibbles(b[2:], writeSigned(b, src, 16)) }

func writeQ4_1(b []byte, src []float32) { putNibbles(b[4:], writeOffset(b, src, 16)) }

func writeQ5_0(b []byte, src []float32) {
	q := writeSigned(b, src, 32)
	putFifth(b[2:], q)
	putNibbles(b[6:], q)
}

func writeQ5_1(b []byte, src []float32) {
	q := writeOffset(b, src, 32)
	putFifth(b[4:], q)
	putNibbles(b[8:], q)
}

// writeIQ4NL gives the extreme value the level -127 and every other the nearest level.
func writeIQ4NL(b []byte, src []float32) {
	d := extreme(src) / -127
	putHalf(b, d)
	inv := inverse(d)
	var q [32]byte
	for j, x := range src[:32] {
		v := x * inv
		best := 0
		for l := 1; l < len(levelsIQ4NL); l++ {
			// Levels ascend, so the nearest one is behind the last midpoint below v.
			if 2*v > float32(int(levelsIQ4NL[l-1])+int(levelsIQ4NL[l])) {
				best = l
			}
		}
		q[j] = byte(best)
	}
	putNibbles(b[2:], q)
}
