package model

import (
	"math"

	"sandwich/internal/portable"
)

// Parameters of ops by which families differ. exec returns an error for unsupported ones when a
// model is loaded.

// Activation identifies a function of a gate and an up projection, or of one product.
type Activation uint8

// Activations; x is the output of the gate and y that of the up projection.
const (
	NoActivation  Activation = iota // identity
	SwiGLU                          // x*sigmoid(x) * y
	GeGLU                           // x*Phi(x) * y, by the approximation with tanh
	ClampedSwiGLU                   // x*sigmoid(1.702x) * (y+1), of x at most 7 and y from -7 to 7
	SigmoidGLU                      // sigmoid(x) * y
	GELU                            // x*Phi(x) of one product, by the approximation with tanh
)

var activationNames = [...]string{"none", "SwiGLU", "GeGLU", "clamped SwiGLU", "sigmoid", "GELU"}

func (a Activation) String() string { return activationNames[a] }

// Attn holds the parameters of one layer's attention, softmax(Scale * Q K^T) V.
type Attn struct {
	Scale         float32 // factor of the scores
	Window        int     // positions that a row attends to, its own included; 0: all before it
	Softcap       float32 // scores become c*tanh(score/c); 0: no cap
	Bidirectional bool    // rows also attend to later rows; a window is centered on the row
	Store         string  // kind of KV store; "": windowed with a Window, else full
}

// AttnTemperature sharpens attention with the length of a sequence: queries at position p are
// multiplied by 1 + Scale * ln(1 + floor((p+Offset)/Length)) (Nakanishi: Scalable-Softmax, 2025).
type AttnTemperature struct {
	Scale  float64
	Length int // positions
	Offset float64
}

// At returns the factor at a position.
func (t *AttnTemperature) At(pos int) float64 {
	return 1 + float64(t.Scale*portable.Log(1+math.Floor((float64(pos)+t.Offset)/float64(t.Length))))
}

// Score identifies the function of a router's logits before experts are chosen.
type Score uint8

// Scores.
const (
	Softmax Score = iota // over all experts
	Sigmoid
)

var scoreNames = [...]string{"softmax", "sigmoid"}

func (s Score) String() string { return scoreNames[s] }

// Router holds the parameters by which a router chooses the experts with the largest scores, and
// computes their weights.
type Router struct {
	Score      Score
	Norm       bool    // the scores of the chosen experts are divided by their sum
	Scale      float32 // factor of the weights
	ScaleInput bool    // the weight multiplies the input of the expert instead of its output
	Bias       *Vector // [experts], added to the scores for the choice only; or nil
	// Experts are divided into Groups groups, and chosen only from the GroupsUsed groups whose two
	// best experts have the largest sum of scores; 0 and 1 mean no groups.
	Groups, GroupsUsed int
}

// Need determines whether a file must have a tensor.
type Need uint8

// A tensor with IfPresent or Usually is used if the file has it. Synthetic models have those with
// Usually, and all layers of a file must have them or none.
const (
	Never Need = iota
	IfPresent
	Usually
	Always
)
