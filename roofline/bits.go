package roofline

import "sandwich/microkernel"

// Bits is the bits per value of a weight type as a file stores it, scales included: 32 for f32, 8.5
// for q8_0; 32 also for a type without kernels.
func Bits(weightType string) float64 {
	t, err := microkernel.ParseWeightType(weightType)
	if err != nil {
		return 32
	}
	return 8 * float64(t.RowBytes(t.Block())) / float64(t.Block())
}
