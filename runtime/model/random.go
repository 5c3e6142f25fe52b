package model

import (
	"math"
	"strings"

	"sandwich/plans"
)

// Random weights are scaled so that a forward pass behaves: activations of every layer near 1,
// attention neither flat nor one-hot, and logits with this standard deviation, so that a softmax
// has a clear top.
const logitStd = 6

// gains are the factors from the standard deviation of a product's input to that of its output, by
// the matrix's role; 1 for the others.
var gains = map[string]float64{"q": 1.2, "k": 1.2, "o": 1.5, "up": 1.5, "down": 1.5, "router": 2, "head": logitStd}

// headNorm is about what norms of the heads of Q and K weigh, spread how much of it any norm's
// weights differ.
const (
	headNorm = 1.2
	spread   = 0.1
)

// initial is what random values of a model are like.
type initial struct {
	embed   float32 // standard deviation of the embedding
	outNorm float32 // mean of the last norm
}

func newInit(m *Model) initial {
	if !m.Tied {
		return initial{embed: 0.5, outNorm: 1}
	}
	// A tied head gets its scale from the last norm, so that the input embedding can stay small.
	const embed = float32(0.12)
	return initial{embed: embed, outNorm: logitStd / (embed * float32(math.Sqrt(float64(m.Dims.Hidden))))}
}

// matrix is the standard deviation of a weight's values.
func (initial) matrix(w *Weight) float32 {
	gain, ok := gains[strings.TrimPrefix(strings.TrimPrefix(w.Role, shared), plans.RoleWhole)]
	if !ok {
		gain = 1
	}
	return float32(gain / math.Sqrt(float64(w.K)))
}

// bias is that of a projection's bias.
func (initial) bias(role string) float32 {
	if role == "q" || role == "k" {
		return 0.5
	}
	return 0.3
}
