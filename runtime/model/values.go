package model

import "math"

// The values by which families of models differ. An architecture gives them to its ops; exec takes
// them as they come, and refuses by name, when a model is loaded, those that it does not compute.

// Activation joins a gate and an up projection into one output, or follows one product.
type Activation uint8

// Activations; x is the gate's output and y that of the up projection.
const (
	NoActivation  Activation = iota // a product is stored as it is
	SwiGLU                          // x*sigmoid(x) * y
	GeGLU                           // x*Phi(x) * y, by the approximation with tanh
	ClampedSwiGLU                   // x*sigmoid(1.702x) * (y+1), of x at most 7 and y from -7 to 7
	SigmoidGLU                      // sigmoid(x) * y
	GELU                            // x*Phi(x) of one product, by the approximation with tanh
)

var activationNames = [...]string{"none", "SwiGLU", "GeGLU", "clamped SwiGLU", "sigmoid", "GELU"}

func (a Activation) String() string { return activationNames[a] }

// Attn is what one layer's attention is: softmax(Scale * Q K^T) V over the positions that it sees.
type Attn struct {
	Scale   float32 // of the scores
	Window  int     // positions that a row sees, its own included; 0: all before it
	Softcap float32 // scores are c*tanh(score/c); 0: as they are
	Both    bool    // rows see what is behind them, too; of a window one half lies on either side
	Store   string  // the kind of store that remembers for the layer; "": a window's, or a full one
}

// Heads are the sizes of a layer's attention.
type Heads struct{ Q, KV, Dim int }

// Temper makes attention sharper as a sequence gets longer: queries at position p are multiplied by
// 1 + Scale * ln(1 + floor((p+Offset)/Length)) (Nakanishi: Scalable-Softmax, 2025).
type Temper struct {
	Scale  float64
	Length int // positions
	Offset float64
}

// At is the factor at a position.
func (t *Temper) At(pos int) float64 {
	return 1 + t.Scale*math.Log(1+math.Floor((float64(pos)+t.Offset)/float64(t.Length)))
}

// Score is what a router's logits become before experts are chosen.
type Score uint8

// Scores.
const (
	Softmax Score = iota // over all experts
	Sigmoid
)

var scoreNames = [...]string{"softmax", "sigmoid"}

func (s Score) String() string { return scoreNames[s] }

// Router is how the logits of a mixture's router become the weights of the chosen experts, which
// are those with the largest scores.
type Router struct {
	Score  Score
	Norm   bool    // the chosen's scores are divided by their sum
	Scale  float32 // of the weights
	Inward bool    // the weight multiplies what the expert reads, not what it writes
	Bias   *Vector // [experts], added to the scores for the choice alone; or nil
	// Of so many groups of experts those with the best two count, and no expert of another is
	// chosen; 0 and 1: all do.
	Groups, GroupsUsed int
}

// Rope says how positions rotate queries and keys.
type Rope struct {
	Base    float64
	Neox    bool    // pairs (i, i+d/2) instead of (2i, 2i+1)
	Dim     int     // leading dimensions of a head that rotate; pairs = Dim/2
	Factors *Vector // [Dim/2] divisors of the angles (Llama 3 frequency scaling), or nil
	Long    *Long   // other divisors by the length of the context, or nil
	Scale   float64 // positions are multiplied by this (linear scaling); 1 otherwise
	Yarn    *Yarn   // interpolation by wave length, which takes Scale's place; or nil
	Gain    float64 // cosines and sines are multiplied by this; 1 otherwise
	Still   []int   // pairs that do not turn
	Rule    string  // a rule of scaling known by its name alone; "" for those above
}

// Long are the divisors of LongRoPE (Ding et al., 2024): Short where a sequence may have at most
// Original positions, Long where it may have more.
type Long struct {
	Original    int
	Short, Long *Vector // [Dim/2]
}

// Need is whether a file must have a tensor.
type Need uint8

// A tensor that is there IfPresent or Usually is taken where the file happens to carry it; Synth
// writes the latter.
const (
	Never Need = iota
	IfPresent
	Usually
	Always
)
