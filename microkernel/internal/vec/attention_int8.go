package vec

import (
	"math"
	"unsafe"

	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/internal/ref"
)

// The definition of attention by a dot product of integers, on a cache of KVQ8. Scores are chains
// over the sets of 32 dimensions that have a scale; in a block the weights of values, which are
// probabilities times scales, are integers of eight bits for each set, under a scale of their own.

// refIntegerScores is AttentionDot.refScores for integers: the query is quantized as activations
// are, and a score is a chain over the sets of 32 dimensions that share a scale.
func refIntegerScores(l KVLayout, q []float32, k unsafe.Pointer, p []float32) {
	var row [maxKVDim / kvScaleDims]kernel.ActQ8
	refQuantizeRowQ8(&q[0], l.HeadDim, unsafe.Pointer(&row))
	for pos := range p {
		for set := range l.HeadDim / kvScaleDims {
			sum, d := int32(0), set*kvScaleDims
			for i, x := range row[set].Q {
				sum += int32(x) * int32(*(*int8)(unsafe.Add(k, l.kIndex(pos, d+i))))
			}
			scaled := float32(sum) * q8Scale(k, l.scaleOf(pos, d))
			p[pos] = ref.FMA32(scaled, row[set].Scale, p[pos])
		}
	}
}

// refIntegerValues is AttentionDot.refValues for integers: the weights of values, which are
// probabilities times scales, are quantized to eight bits for each set, with a scale of their own.
func refIntegerValues(l KVLayout, p []float32, v unsafe.Pointer, block []float32) {
	for d := 0; d < l.HeadDim; d += kvScaleDims {
		weights, scale := refWeights(p, func(pos int) float32 { return q8Scale(v, l.scaleOf(pos, d)) })
		for i := d; i < d+kvScaleDims; i++ {
			sum := int32(0)
			for pos, w := range weights[:len(p)] {
				sum += w * int32(*(*int8)(unsafe.Add(v, l.vIndex(pos, i))))
			}
			block[i] = float32(sum) * scale
		}
	}
}

// refWeights quantizes probabilities times the scales of their values to integers from 0 to 255,
// and returns the value of one step. A product that is NaN becomes zero.
func refWeights(p []float32, scale func(pos int) float32) (u [KVBlock]int32, step float32) {
	var w [KVBlock]float32
	largest := float32(arith.LeastWeight)
	for pos := range p {
		w[pos] = p[pos] * scale(pos)
		if w[pos] > largest {
			largest = w[pos]
		}
	}
	inverse := arith.ProbabilityTop / largest
	for pos := range p {
		if x := w[pos] * inverse; x > 0 {
			u[pos] = int32(math.RoundToEven(float64(x)))
		}
	}
	return u, largest * arith.ProbabilityStep
}
