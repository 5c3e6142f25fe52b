package model

// The values by which families of models differ. An architecture gives them to its ops; exec takes
// them as they come, and refuses by name, when a model is loaded, those that it does not compute.

// Activation joins a gate and an up projection into one output.
type Activation uint8

// Activations; x is the gate's output and y that of the up projection.
const (
	NoActivation Activation = iota // a product is stored as it is
	SwiGLU                         // x*sigmoid(x) * y
	GeGLU                          // x*Phi(x) * y, by the approximation with tanh
)

var activationNames = [...]string{"none", "SwiGLU", "GeGLU"}

func (a Activation) String() string { return activationNames[a] }

// Attn is what one layer's attention is: softmax(Scale * Q K^T) V over the positions that it sees.
type Attn struct {
	Scale   float32 // of the scores
	Window  int     // positions that a row sees, its own included; 0: all before it
	Softcap float32 // scores are c*tanh(score/c); 0: as they are
	Sinks   bool    // each head has one more score, learned, that takes weight and gives no value
	Store   string  // the kind of store that remembers for the layer; "": a window's, or a full one
}

// Router is how the logits of a mixture's router become the weights of the chosen experts.
type Router uint8

// Routers; all choose the experts with the largest logits.
const (
	SoftmaxOfChosen Router = iota // softmax over the chosen: their weights add up to 1
	SoftmaxOfAll                  // softmax over all, the chosen keep their part of it
)

var routerNames = [...]string{"softmax of the chosen experts", "softmax of all experts"}

func (r Router) String() string { return routerNames[r] }

// Rope says how positions rotate queries and keys.
type Rope struct {
	Base    float64
	Neox    bool    // pairs (i, i+d/2) instead of (2i, 2i+1)
	Dim     int     // leading dimensions of a head that rotate; pairs = Dim/2
	Factors *Vector // [Dim/2] divisors of the angles (Llama 3 frequency scaling), or nil
	Scale   float64 // positions are multiplied by this (linear scaling); 1 otherwise
	Rule    string  // a rule of scaling known by its name alone; "" for those above
}

// Need is whether a file must have a tensor.
type Need uint8

// A tensor that is there IfPresent is taken where the file happens to carry it.
const (
	Never Need = iota
	IfPresent
	Always
)
