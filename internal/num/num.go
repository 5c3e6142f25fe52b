// Package num has arithmetic that the standard library lacks.
package num

import (
	"cmp"
	"math"
	"slices"
)

// CeilDiv returns a/b rounded up. a must not be negative and b must be positive.
func CeilDiv(a, b int) int { return (a + b - 1) / b }

// RoundUp returns n rounded up to a multiple of unit. n must not be negative and unit must be
// positive.
func RoundUp(n, unit int) int { return CeilDiv(n, unit) * unit }

// GCD returns the greatest common divisor of a and b, which must not be negative. GCD(n, 0) is n.
func GCD(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Median returns the median of x, the mean of the middle two values of an even number of them, or
// NaN if x is empty. It does not change x.
func Median(x []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(x))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// Quantile returns the nearest-rank quantile q of ascending values: the smallest of them that a
// fraction q, from 0 to 1, does not exceed. It returns the zero value if there are none.
func Quantile[T cmp.Ordered](sorted []T, q float64) T {
	n := len(sorted)
	if n == 0 {
		var none T
		return none
	}
	const rounding = 1e-12 // 0.07*100 is above 7
	rank := int(math.Ceil(q * float64(n) * (1 - rounding)))
	return sorted[min(n, max(1, rank))-1]
}

// Significant rounds x to four significant digits. It returns 0 for infinities and NaN, and x
// itself if it is too small to scale.
func Significant(x float64) float64 {
	if x == 0 || math.IsInf(x, 0) || math.IsNaN(x) {
		return 0
	}
	unit := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(x))))
	if math.IsInf(unit, 0) || unit == 0 {
		return x
	}
	return math.Round(x*unit) / unit
}
