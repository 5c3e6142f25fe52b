package qtype

// This file describes the types of four bits whose numbers and scales are small floats.

// fp4Values are the floats with two bits of exponent and one of mantissa, multiplied by two.
var fp4Values = [16]int8{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

// exponentHalf describes a scale that is a power of two: byte e is 2^(e-128), half of what its
// exponent says since the numbers are doubled; the last value is not a number. A bfloat16
// represents all of them, including subnormal ones.
var exponentHalf = ScaleLayout{Float: Brain,
	Get: func(p []byte) uint16 {
		switch e := uint16(p[0]); {
		case e == 255:
			return 0x7FC0
		case e < 2:
			return 0x20 << e
		default:
			return (e - 1) << 7
		}
	},
	Put: func(p []byte, h uint16) {
		switch {
		case h>>7 > 0:
			p[0] = byte(min(h>>7+1, 254))
		case h >= 0x40:
			p[0] = 1
		}
	}}

// fp8Scales describes four floats with four bits of exponent, biased by seven, and three of
// mantissa, of which two belong to a sub-block. FloatSubs has one more bit of exponent, so that
// floats that are subnormal in the file are normal; 0x7F counts as zero, and the sign is ignored.
var fp8Scales = SubLayout{At: 0, Bytes: 4,
	Get: func(p []byte, n int) (a, b uint8) { return fromFP8(p[2*n]), fromFP8(p[2*n+1]) },
	Put: func(p []byte, n int, s [2]uint8) {
		for i, x := range s {
			for b := range byte(0x7F) {
				if fromFP8(b) <= x { // they ascend
					p[2*n+i] = b
				}
			}
		}
	}}

// fp8Lift is the difference of the exponent biases of FloatSubs and fp8Scales.
const fp8Lift = 3

func fromFP8(b byte) uint8 {
	switch exponent, mantissa := b>>3&15, b&7; {
	case b == 0x7F || b&0x7F == 0:
		return 0
	case exponent > 0:
		return (exponent+fp8Lift)<<3 | mantissa
	default: // normalize: the leading one of the mantissa becomes implicit
		exponent = fp8Lift + 1
		for ; mantissa < 8; mantissa <<= 1 {
			exponent--
		}
		return exponent<<3 | mantissa&7
	}
}
