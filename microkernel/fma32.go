package microkernel

import "math"

// FMA32 returns a*b+c rounded once to float32 (round to nearest even), with denormals, infinities and NaN as IEEE 754
// has them: what vfmadd and fmla compute. Every plain-Go oracle builds its chains from it.
//
// The product of two float32 is exact in float64. The float64 sum is turned into a sum "rounded to odd" with the error
// of Knuth's two-sum, and a value rounded to odd with 53 bits rounds correctly to 24 bits or to a float32 denormal
// (Boldo, Melquiond: Emulation of a FMA and correctly rounded sums, IEEE TC 2008).
func FMA32(a, b, c float32) float32 {
	p := float64(a) * float64(b)
	z := float64(c)
	s := p + z
	t := s - p
	e := (p - (s - t)) + (z - t)
	if e == 0 || e != e {
		return float32(s)
	}
	u := math.Float64bits(s)
	if u&1 == 0 {
		if (e > 0) == (s > 0) {
			u++
		} else {
			u--
		}
	}
	return float32(math.Float64frombits(u))
}
