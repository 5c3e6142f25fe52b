// Package num has arithmetic that the standard library lacks.
package num

import (
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

// Significant rounds x to four significant digits. It returns 0 for infinities and NaN.
func Significant(x float64) float64 {
	if x == 0 || math.IsInf(x, 0) || math.IsNaN(x) {
		return 0
	}
	unit := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(x))))
	return math.Round(x*unit) / unit
}
