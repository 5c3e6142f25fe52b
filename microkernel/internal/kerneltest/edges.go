// Package kerneltest has the helpers that tests of generated code share: memory that ends at a
// guard page, and the words around which rounding changes. Only tests import it.
package kerneltest

import (
	"math"
	"math/rand/v2"
)

// edges are the words around which rounding to bfloat16 and the dot products change their ways.
var edges = []uint32{0, 1, 0x007FFFFF, 0x00800000, 0x00807FFF, 0x00808000, 0x00808001, 0x3F800000,
	0x3F808000, 0x3F818000,
	0x7F7FFFFF, 0x7F7F7FFF, 0x7F7F8000, 0x7F800000, 0x7F800001, 0x7FA00000, 0x7FC00000, 0x7FFFFFFF}

// Edge is one of them, of either sign.
func Edge(r *rand.Rand) float32 {
	return math.Float32frombits(edges[r.IntN(len(edges))] | uint32(r.IntN(2))<<31)
}
