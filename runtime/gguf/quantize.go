package gguf

import (
	"encoding/binary"
	"math"
	"math/bits"

	"sandwich/microkernel/qtype"
)

// Quantize converts float32 values to whole blocks of type t. len(src) must be the elements that
// dst holds; values must be finite.
//
// The 32-element types round like the reference quantizer of ggml. The K types use plain
// least-range scales, without its search over candidates: valid blocks, a little less accurate.
// Numbers of codebook types become the nearest words. This is for `model synth` and tests, not for
// quantizing trained models. Equal input gives equal bytes on every platform: products are rounded
// before they are added.
func Quantize(dst []byte, t Type, src []float32) error {
	blocks, err := checkBlocks("quantize", t, len(src), len(dst))
	if err != nil {
		return err
	}
	d := t.Desc()
	switch {
	case d.Float == qtype.Single:
		for i, x := range src {
			binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(x))
		}
	case d.Float == qtype.Half:
		for i, x := range src {
			binary.LittleEndian.PutUint16(dst[2*i:], f32ToF16(x))
		}
	case d.Float == qtype.Brain:
		for i, x := range src {
			binary.LittleEndian.PutUint16(dst[2*i:], f32ToBF16(x))
		}
	case hasFewValues(d):
		few := fewValuesOf(d)
		for b := range blocks {
			block := dst[b*d.Bytes : (b+1)*d.Bytes]
			clear(block)
			few.write(block, src[b*d.Block:(b+1)*d.Block])
		}
	default:
		for b := range blocks {
			writeBlock(d, dst[b*d.Bytes:(b+1)*d.Bytes], src[b*d.Block:(b+1)*d.Block])
		}
	}
	return nil
}

// writeBlock converts one block by the kind of its scales.
func writeBlock(d *qtype.Desc, block []byte, src []float32) {
	clear(block)
	switch {
	case d.Subs == qtype.SignedSubs:
		writeSignedScales(d, block, src)
	case d.Subs != qtype.NoSubs:
		writeOffsetScales(d, block, src)
	default:
		for n := range d.SubBlocks() {
			var t qtype.SubBlock
			part := src[n*qtype.SubBlockK:][:qtype.SubBlockK]
			switch {
			case d.Codebook != nil:
				quantizeCodebook(&t, part, d.Codebook)
			case d.Affine():
				quantizeOffset(&t, part, 1<<d.Bits())
			case d.Signed:
				quantizeMirrored(&t, part, d.ZeroPoint)
			default:
				quantizeZero(&t, part, d.ZeroPoint)
			}
			d.Write(block, t, n)
		}
	}
}

// putHalf writes x as f16 and returns the value that a reader will see.
func putHalf(h *uint16, x float32) float32 {
	*h = f32ToF16(x)
	return f16ToF32(*h)
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
	// Clamping first keeps the conversion inside int whatever x is. Adding a half and truncating
	// needs a positive number.
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
	// The bits rotated left by one order values by magnitude, the sign last: a maximum without
	// unpredictable branches.
	var largest uint32
	for _, x := range src {
		largest = max(largest, bits.RotateLeft32(math.Float32bits(x), 1))
	}
	return math.Float32frombits(bits.RotateLeft32(largest, -1))
}

// span returns the smallest and the largest value.
func span(src []float32) (lo, hi float32) {
	lo, hi = src[0], src[0]
	for _, x := range src {
		lo, hi = min(lo, x), max(hi, x)
	}
	return lo, hi
}

// quantizeMirrored is for numbers with a sign of which the least is not used, so that both ends
// mirror each other.
func quantizeMirrored(t *qtype.SubBlock, src []float32, zero int) {
	d := float32(math.Abs(float64(extreme(src)))) / float32(zero-1)
	putHalf(&t.BlockScales[0], d)
	inv := inverse(d)
	for j, x := range src {
		t.U[j] = byte(nearest(x*inv, 1-zero, zero-1) + zero)
	}
}

// quantizeZero is for the other types with a zero-point: the extreme value takes the one number
// that has no mirror image, the least.
func quantizeZero(t *qtype.SubBlock, src []float32, zero int) {
	d := extreme(src) / float32(-zero)
	putHalf(&t.BlockScales[0], d)
	inv := inverse(d)
	for j, x := range src {
		t.U[j] = byte(nearest(x*inv, -zero, zero-1) + zero)
	}
}

// quantizeOffset is for the types with a minimum.
func quantizeOffset(t *qtype.SubBlock, src []float32, levels int) {
	lo, hi := span(src)
	d := (hi - lo) / float32(levels-1)
	putHalf(&t.BlockScales[0], d)
	putHalf(&t.BlockScales[1], lo)
	inv := inverse(d)
	for j, x := range src {
		t.U[j] = byte(nearest((x-lo)*inv, 0, levels-1))
	}
}

// quantizeCodebook gives the extreme value the first entry of the codebook and every other the
// nearest one.
func quantizeCodebook(t *qtype.SubBlock, src []float32, values *[16]int8) {
	d := extreme(src) / float32(values[0])
	putHalf(&t.BlockScales[0], d)
	inv := inverse(d)
	for j, x := range src {
		v := x * inv
		best := 0
		for l := 1; l < len(values); l++ {
			// Values ascend, so the nearest one follows the last midpoint below v.
			if 2*v > float32(int(values[l-1])+int(values[l])) {
				best = l
			}
		}
		t.U[j] = byte(best)
	}
}
