package topotest

import (
	"math"
	"math/rand/v2"
)

// Latencies simulates a measured matrix: near(i,j) times noise of the given relative standard
// deviation.
func Latencies(r *rand.Rand, n int, noise float64, near func(i, j int) float64) [][]float64 {
	m := make([][]float64, n)
	for i := range m {
		m[i] = make([]float64, n)
	}
	for i := range m {
		for j := range i {
			v := near(i, j) * math.Max(0.05, 1+noise*r.NormFloat64())
			m[i][j], m[j][i] = v, v
		}
	}
	return m
}

// Indexes returns the numbers 0 to n-1.
func Indexes(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
