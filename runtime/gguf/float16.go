package gguf

import "math"

// f16ToF32 converts an IEEE 754 half to float32, exactly. Infinities and NaN payloads are kept.
func f16ToF32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	mag := uint32(h & 0x7fff)
	if mag >= 0x7c00 { // infinity or NaN
		return math.Float32frombits(sign | 0x7f800000 | (mag&0x3ff)<<13)
	}
	// The half's exponent and mantissa sit 13 bits lower than a float32's; the biases differ by
	// 112. Scaling by 2^112 also normalizes subnormal halves, exactly.
	f := math.Float32frombits(mag<<13) * 0x1p112
	return math.Float32frombits(sign | math.Float32bits(f))
}

// f32ToF16 converts to an IEEE 754 half, rounding to nearest, ties to even. What is too large
// becomes infinity; a NaN stays a (quiet) NaN.
func f32ToF16(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b >> 16 & 0x8000)
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000:
		return sign | 0x7e00 | uint16(b>>13&0x3ff)
	case b >= 0x47800000: // 65536 and above; 65520..65535 reach infinity by rounding below
		return sign | 0x7c00
	// below 2^-14 the result is subnormal: the spacing of float32 at 0.5 is the spacing of halves
	// here
	case b < 0x38800000:
		return sign | uint16(math.Float32bits(math.Float32frombits(b)+0.5)-0x3f000000)
	}
	b += 0xfff + b>>13&1
	return sign | uint16((b-0x38000000)>>13)
}

// bf16ToF32 converts a bfloat16 to float32, exactly.
func bf16ToF32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// f32ToBF16 converts to a bfloat16, rounding to nearest, ties to even. A NaN stays a (quiet) NaN.
func f32ToBF16(f float32) uint16 {
	b := math.Float32bits(f)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
