package roofline

import "sandwich/microkernel"

// Bits returns the bits per value of a weight type in a file, including scales: 32 for f32, 8.5 for
// q8_0. For a type without kernels it returns 32.
func Bits(weightType string) float64 {
	t, err := microkernel.ParseWeightType(weightType)
	if err != nil {
		return 32
	}
	return 8 * float64(t.RowBytes(t.Block())) / float64(t.Block())
}
