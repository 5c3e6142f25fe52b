package tensors

import (
	"math"
	"strings"

	"sandwich/plans"
	"sandwich/runtime/model"
)

// logitStd is the standard deviation of logits with random weights, at which a softmax has a clear
// maximum. Weights are scaled so that activations of all layers are near 1 and attention is neither
// flat nor one-hot.
const logitStd = 6

// gains holds, by role of the matrix, the ratio of the standard deviations of a product's output
// and input; 1 for other roles.
var gains = map[string]float64{"q": 1.2, "k": 1.2, "o": 1.5, "up": 1.5, "down": 1.5, "router": 2, "head": logitStd}

// headNorm is the mean of the weights of head norms of Q and K. spread is the relative deviation of
// all norm weights.
const (
	headNorm = 1.2
	spread   = 0.1
)

// initial holds the distribution of a model's random values.
type initial struct {
	embed   float32 // standard deviation of the embedding
	outNorm float32 // mean of the last norm
}

// newInit returns the distribution for a model.
func newInit(m *model.Model) initial {
	if !m.Tied {
		return initial{embed: 0.5, outNorm: 1}
	}
	// The last norm scales a tied head, so that the embedding can be small.
	const embed = float32(0.12)
	return initial{embed: embed, outNorm: logitStd / (embed * float32(math.Sqrt(float64(m.Dims.Hidden))))}
}

// matrix returns the standard deviation of a weight's values.
func (initial) matrix(w *model.Weight) float32 {
	gain, ok := gains[strings.TrimPrefix(strings.TrimPrefix(w.Role, model.SharedRole), plans.RoleWhole)]
	if !ok {
		gain = 1
	}
	return float32(gain / math.Sqrt(float64(w.K)))
}

// bias returns the standard deviation of a bias by role.
func (initial) bias(role string) float32 {
	if role == "q" || role == "k" {
		return 0.5
	}
	return 0.3
}

// decayA and decayShift are the means of random values of A and Shift, at which a state lasts some
// tens of positions.
const decayA, decayShift = -0.3, -2

// convStd returns the standard deviation of a convolution's weights.
func convStd(width int) float32 { return float32(1 / math.Sqrt(float64(width))) }
