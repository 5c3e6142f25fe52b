package api

import "math"

// Normalize gives a vector the length 1: how embeddings are compared. One of zeros stays. The sum
// of squares is taken in float64, in ascending order.
func Normalize(v []float32) {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return
	}
	by := 1 / math.Sqrt(sum)
	for i, x := range v {
		v[i] = float32(float64(x) * by)
	}
}
