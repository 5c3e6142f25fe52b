package ref

import "math"

// HalfFromFloat rounds to IEEE half precision, ties to even, as vcvtps2ph does: overflow gives
// infinity, a NaN stays a quiet NaN with the upper bits of its payload.
func HalfFromFloat(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b >> 16 & 0x8000)
	a := b & 0x7fffffff
	switch {
	case a > 0x7f800000:
		return sign | 0x7e00 | uint16(a>>13&0x3ff)
	case a >= 0x477ff000: // 65520, half way from the largest half to the next step
		return sign | 0x7c00
	case a < 0x38800000: // below 2^-14: a denormal half, or zero; the sum leaves the rounded integer in the low bits
		return sign | uint16(math.Float32bits(math.Float32frombits(a)+0.5)-math.Float32bits(0.5))
	}
	a += 0xfff + a>>13&1
	return sign | uint16((a-0x38000000)>>13)
}
