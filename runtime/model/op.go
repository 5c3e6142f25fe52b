package model

// Buf names an activation buffer; exec owns the memory, one row per token of the running batch.
type Buf uint8

// The activation buffers of a decoder layer and their width in float32 elements.
const (
	BufX      Buf = iota // residual stream                      [rows, hidden]
	BufH                 // normalized input of a matrix product [rows, hidden]
	BufQ                 // queries                              [rows, heads*headDim]
	BufK                 // keys                                 [rows, kvHeads*headDim]
	BufV                 // values                               [rows, kvHeads*headDim]
	BufAtt               // attention output                     [rows, heads*headDim]
	BufGate              // silu(gate)*up                        [rows, ffn], with experts [rows*used, expert ffn]
	BufY                 // output of o and down                 [rows, hidden]
	BufRouter            // logits of the router                 [rows, experts]
	BufExpert            // input, later output, of the experts  [rows*used, hidden], rows of one expert together
	BufLogits            // logits of the wanted rows            [logit rows, vocab]
	NumBufs
)

// Kind is what an op computes.
type Kind uint8

// The ops of a decoder. Each is one step between two barriers; an index into Model.Ops is a place
// to stop and to resume.
const (
	// OpEmbed reads the embedding rows of the batch's tokens: X = Scale * E[token].
	OpEmbed Kind = iota
	// OpNorm is H = RMSNorm(X, Norm).
	OpNorm
	// OpMatMul is Outs[i] = In * Weights[W[i]]^T (+ Bias[i]); weights that share their input are
	// one op (q, k and v). With an activation it is Outs[0] = act(In * gate^T, In * up^T), with
	// gate W[0] and up W[1].
	OpMatMul
	// OpRotate normalizes the heads of Q and K where the model does, rotates both by position where
	// the layer does, and stores K and V in the cache.
	OpRotate
	// OpAttention is Att = softmax(Scale * Q K^T) V, causal, over the cached positions of each
	// row's sequence that the layer sees.
	OpAttention
	// OpAddNorm is X += Scale * Y; H = RMSNorm(X, Norm). With Post, Y is normalized before it is
	// added.
	OpAddNorm
	// OpGather copies the rows of H whose logits are wanted, times Scale, in order, to the top of
	// Y.
	OpGather
	// OpRoute takes the best experts of each row by Router, with weights softmax(their logits), and
	// orders (row, expert) pairs by expert.
	OpRoute
	// OpDispatch copies H to Expert: one row for each pair.
	OpDispatch
	// OpExperts is OpMatMul with as many matrices as there are experts: each multiplies its own
	// pairs.
	OpExperts
	// OpCombine is Y = the weighted sum of each row's pairs in Expert, best expert first.
	OpCombine
)

var kindNames = [...]string{"embed", "norm", "matmul", "rotate", "attention", "add-norm", "gather",
	"route", "dispatch", "experts", "combine"}

func (k Kind) String() string { return kindNames[k] }

// Op is one step of a forward pass. Which fields mean something follows from Kind.
type Op struct {
	Kind   Kind
	Layer  int
	Name   string     // "blk.3.qkv", for traces and profiles
	In     Buf        // OpMatMul, OpExperts
	W      []int      // OpMatMul, OpExperts: indices into Model.Weights
	Act    Activation // OpMatMul, OpExperts: if any, of a gate and an up projection with one output
	Outs   []Buf      // OpMatMul, OpExperts: one buffer per product
	Bias   []*Vector  // OpMatMul, OpExperts: one per weight, nil where there is none
	Scale  float32    // OpEmbed, OpAddNorm, OpGather
	Norm   *Vector    // OpNorm, OpAddNorm: weight [hidden]
	Post   *Vector    // OpAddNorm: weight [hidden] or nil
	QNorm  *Vector    // OpRotate: weight [headDim] or nil
	KNorm  *Vector    // OpRotate: weight [headDim] or nil
	Rope   *Rope      // OpRotate: nil in a layer without positions
	Attn   Attn       // OpAttention
	Router Router     // OpRoute
}

// Vector is a small float32 parameter: a norm weight or a bias.
type Vector struct {
	Name     string
	N        int
	Optional bool      // a file may lack it
	Data     []float32 // [N]; nil until it is loaded, unless the configuration gives its values
}
