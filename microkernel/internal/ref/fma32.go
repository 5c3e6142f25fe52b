package ref

import "math"

// FMA32 returns the correctly rounded float32 of a*b + c, as VFMADD and FMLA compute it, on any
// machine. The plain-Go oracles use it.
//
// The product of two float32 is exact in float64. Its sum with c is rounded twice, first to
// float64 and then to float32, which matters only if the float64 is half-way between two float32
// or below their normal range. In these cases the float64 is first rounded to odd (Boldo and
// Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to
// odd", IEEE Transactions on Computers 57, 2008), which keeps the lost part in the last bit.
func FMA32(a, b, c float32) float32 {
	p := float64(a) * float64(b)
	s := p + float64(c)
	bits := math.Float64bits(s)
	const (
		halfWay   = 1 << 28
		below     = 1<<29 - 1
		minNormal = (1023 - 126) << 52
	)
	if bits&below != halfWay && bits&^(1<<63) >= minNormal {
		return float32(s)
	}
	return float32(roundOdd(p, float64(c), s))
}

// roundOdd returns p + c rounded to odd, given the sum s rounded to nearest.
func roundOdd(p, c, s float64) float64 {
	// Knuth's two-sum: lost is exactly p + c - s.
	cc := s - p
	lost := (p - (s - cc)) + (c - cc)
	bits := math.Float64bits(s)
	if lost == 0 || lost != lost || bits&1 == 1 {
		return s
	}
	if (lost > 0) == (s > 0) {
		return math.Float64frombits(bits + 1) // the exact sum is farther from zero
	}
	return math.Float64frombits(bits - 1)
}
