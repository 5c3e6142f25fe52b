package model

import "sandwich/runtime/gguf"

// Buf names an activation buffer; exec owns the memory, one row per token of the running batch.
type Buf uint8

// The activation buffers of a decoder layer and their width in float32 elements.
const (
	BufX        Buf = iota // residual stream                      [rows, hidden]
	BufH                   // normalized input of a matrix product [rows, hidden]
	BufQ                   // queries                              [rows, heads*headDim]
	BufK                   // keys                                 [rows, kvHeads*headDim]
	BufV                   // values                               [rows, kvHeads*headDim]
	BufAtt                 // attention output                     [rows, heads*headDim]
	BufGate                // silu(gate)*up                        [rows, ffn], with experts [rows*used, expert ffn]
	BufShared              // the same of what is beside experts   [rows, shared ffn]
	BufY                   // output of o and down                 [rows, hidden]
	BufRouter              // logits of the router                 [rows, experts]
	BufExpert              // input, later output, of the experts  [rows*used, hidden], rows of one expert together
	BufInputs              // each layer's own input               [rows, layers*inputs]
	BufInput               // a gate of one layer's input          [rows, inputs]
	BufMix                 // queries, keys and values of a delta rule, or the parts of a gated convolution
	BufZ                   // what the output of attention, or of a delta rule, is gated by
	BufAlpha               // decays of a delta rule               [rows, value heads]
	BufBeta                // its rates                            [rows, value heads]
	BufLatentQ             // what queries are made of             [rows, latent]
	BufLatentKV            // what keys and values are made of     [rows, latent + rotated]
	BufKeyVal              // keys and values made of it           [rows, heads*(unrotated + value)]
	BufFull                // queries, later values, of all heads  [rows, heads*key], [rows, heads*value]
	BufLogits              // logits of the wanted rows            [logit rows, outputs]
	NumBufs
)

// Kind is what an op computes.
type Kind uint8

// The ops of a decoder. Each is one step between two barriers; an index into Model.Ops is a place
// to stop and to resume.
const (
	// OpEmbed reads the embedding rows of the batch's tokens: X = Scale * E[token] (+ Types[0])
	// (+ Places[position]).
	OpEmbed Kind = iota
	// OpNorm is H = RMSNorm(X, Norm), or X = LayerNorm(X, Norm, Shift) where it has a Shift.
	OpNorm
	// OpMatMul is Outs[i] = In * Weights[W[i]]^T (+ Bias[i]); weights that share their input are
	// one op (q, k and v). With an activation it is Outs[0] = act(In * gate^T, In * up^T), with
	// gate W[0] and up W[1], or of the one product there is.
	OpMatMul
	// OpRotate normalizes the heads of Q, K and V where the model does, rotates Q and K by position
	// where the layer does, tempers Q, and stores K and V in the cache. In a layer that reads those
	// of another one there is Q alone.
	OpRotate
	// OpAttention is Att = softmax(Scale * Q K^T) V, causal, over the cached positions of each
	// row's sequence that the layer sees.
	OpAttention
	// OpAddNorm is X += Scale * Y; H = RMSNorm(X, Norm), if it has a Norm, or X = LayerNorm(X,
	// Norm, Shift). With Post, Y is normalized before it is added, with Gain X is multiplied behind
	// it.
	OpAddNorm
	// OpGather copies the rows of H whose logits are wanted, times Scale, in order, to the top of
	// Y.
	OpGather
	// OpRoute takes the best experts of each row, with their weights, by Router, and orders (row,
	// expert) pairs by expert.
	OpRoute
	// OpDispatch copies H to Expert: one row for each pair, times its weight where Router says so.
	OpDispatch
	// OpExperts is OpMatMul with as many matrices as there are experts: each multiplies its own
	// pairs.
	OpExperts
	// OpCombine is Y = the weighted sum of each row's pairs in Expert, best expert first. With Onto
	// it is added to what Y holds, which is multiplied before by sigmoid(H * Gate) if there is a
	// Gate.
	OpCombine
	// OpRowNorm is Outs[0] = RMSNorm(In, Norm), of whole rows; with Onto it is added to what
	// Outs[0] holds, and In is overwritten.
	OpRowNorm
	// OpCap is In = Cap * tanh(In / Cap) of the wanted rows.
	OpCap
	// OpInputs is Inputs = (RMSNorm(Inputs * Scale, Norm) + sqrt(n) * Table[token]) / sqrt(2), of
	// each layer's n elements.
	OpInputs
	// OpConv is a causal convolution. Of a delta rule it is Mix = silu(conv(Mix)), of which the
	// heads of queries and keys are then given the length 1, and queries the scale 1/sqrt(KeyDim);
	// Alpha and Beta become decays and rates. Otherwise Mix is b, c and x, and Outs[0] = c *
	// conv(b*x).
	OpConv
	// OpDelta is Att = the delta rule over Mix, Alpha and Beta.
	OpDelta
	// OpOutGate is Att = act(In, RMSNorm(Att, Norm)), the norm that of each head, if there is one.
	OpOutGate
	// OpGate is Outs[0] = act(Outs[0], In), of the elements that In has for the layer.
	OpGate
	// OpHeads is Outs[0] = In * W^T of each head, with W[0] a stack of a matrix for each: head h
	// reads In from h*InStep on and writes Outs[0] from h*OutStep on. Without W it copies N
	// elements.
	OpHeads
	// OpLatent makes Q, K and V of latent attention by position, and stores K and V in the cache.
	OpLatent
	// OpPool makes one row of each text that ends in the forward, of the rows of In, by Pool; to
	// the top of Outs[0].
	OpPool
	// OpSoftmax is In = softmax(In) of each wanted row.
	OpSoftmax
)

var kindNames = [...]string{"embed", "norm", "matmul", "rotate", "attention", "add-norm", "gather",
	"route", "dispatch", "experts", "combine", "row-norm", "cap", "inputs", "conv", "delta", "out-gate", "gate",
	"heads", "latent", "pool", "softmax"}

func (k Kind) String() string { return kindNames[k] }

// Op is one step of a forward pass. Which fields mean something follows from Kind.
type Op struct {
	Kind   Kind
	Layer  int
	Name   string     // "blk.3.qkv", for traces and profiles
	In     Buf        // OpMatMul, OpExperts, OpRowNorm, OpCap, OpGate, OpPool, OpSoftmax
	Wanted bool       // OpMatMul: of the wanted rows alone, which stand at the top of In
	W      []int      // OpMatMul, OpExperts: indices into Model.Weights
	Act    Activation // OpMatMul, OpExperts: if any, of a gate and an up projection with one output; OpGate
	Outs   []Buf      // OpMatMul, OpExperts: one buffer per product; OpRowNorm, OpGate, OpCombine, OpPool: one
	Bias   []*Vector  // OpMatMul, OpExperts: one per weight, nil where there is none
	Scale  float32    // OpEmbed, OpAddNorm, OpGather, OpInputs
	// OpNorm, OpAddNorm: weight [hidden], OpAddNorm also nil; OpRowNorm: [width]; OpInputs: [n];
	// OpOutGate: [headDim] or nil
	Norm   *Vector
	Post   *Vector // OpAddNorm: weight [hidden] or nil
	Gain   *Vector // OpAddNorm: [1] or nil
	Shift  *Vector // OpNorm, OpAddNorm: bias [hidden] of a LayerNorm; nil: it is an RMSNorm
	Types  *Vector // OpEmbed: [types][hidden] or nil
	Places *Vector // OpEmbed: [context][hidden] or nil
	Pool   Pooling // OpPool
	QNorm  *Vector // OpRotate: weight [headDim] or nil
	KNorm  *Vector // OpRotate: weight [headDim] or nil
	VNorm  *Vector // OpRotate: weight [headDim] or nil
	KeyVal bool    // OpRotate: values are the keys, before these are normalized
	Temper *Temper // OpRotate: nil for none
	Heads  Heads   // OpRotate, OpAttention
	Keeper int     // OpRotate, OpAttention: the layer whose keys and values are read; its own, or an earlier one
	Rope   *Rope   // OpRotate: nil in a layer without positions
	Attn   Attn    // OpAttention
	Sinks  *Vector // OpAttention: [heads], one more score of each head, that gives no value; or nil
	Router Router  // OpRoute, OpDispatch, OpCombine
	Onto   bool    // OpCombine, OpRowNorm
	Gate   *Vector // OpCombine: [hidden] or nil
	Cap    float32 // OpCap
	N      int     // OpGate: elements of a layer; OpOutGate: of Att; OpHeads: of a head
	// OpHeads
	InStep, OutStep int
	Latent          Latent // OpLatent
	Conv            *Conv  // OpConv
	Delta           *Delta // OpConv, OpDelta; nil in a convolution that is none of a delta rule's
	Table           *Table // OpInputs
}

// Table is a matrix [tokens, N] whose rows are looked up.
type Table struct {
	Name   string // of the tensor
	N      int
	Tensor *gguf.Tensor // nil until it is loaded
}

// Vector is a small float32 parameter: a norm weight or a bias.
type Vector struct {
	Name     string    // of the tensor
	N        int       // elements, or those of each expert
	At, Of   int       // the first of them in the tensor, and how many that has; Of is 0 where it is N
	Stack    int       // experts; 0 where it is none of theirs
	Optional bool      // a file may lack it
	Usual    bool      // Synth writes it all the same
	Times    float32   // what the file's values are multiplied by; 0: 1
	Data     []float32 // [N], [Stack][N]; nil until it is loaded, unless the configuration gives its values
}
