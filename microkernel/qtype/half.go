package qtype

import "math"

// FloatFromHalf converts a float16 to float32. It is exact, including denormals and infinities; a
// signaling NaN becomes quiet.
func FloatFromHalf(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	e, m := uint32(h>>10&31), uint32(h&0x3ff)
	switch e {
	case 0:
		v := float32(m) * 0x1p-24
		return math.Float32frombits(math.Float32bits(v) | sign)
	case 31:
		if m != 0 {
			m |= 0x200
		}
		return math.Float32frombits(sign | 0x7f800000 | m<<13)
	}
	return math.Float32frombits(sign | (e+112)<<23 | m<<13)
}
