package model

// Buf identifies an activation buffer. It has one row per token of the running batch; exec owns the
// memory.
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
	BufShared              // silu(gate)*up of the shared part     [rows, shared ffn]
	BufY                   // output of o and down                 [rows, hidden]
	BufRouter              // logits of the router                 [rows, experts]
	BufExpert              // input, later output, of the experts  [rows*used, hidden], rows of one expert together
	BufInputs              // embeddings per layer                 [rows, layers*inputs]
	BufInput               // gate of one layer's embedding        [rows, inputs]
	BufMix                 // queries, keys and values of a delta rule, or the parts of a gated convolution
	BufZ                   // gate of the output of attention or of a delta rule
	BufAlpha               // decays of a delta rule               [rows, value heads]
	BufBeta                // rates of a delta rule                [rows, value heads]
	BufLatentQ             // latent rows of queries               [rows, latent]
	BufLatentKV            // latent rows of keys and values       [rows, latent + rotated]
	BufKeyVal              // keys and values of all heads         [rows, heads*(unrotated + value)]
	BufFull                // queries, later values, of all heads  [rows, heads*key], [rows, heads*value]
	BufLogits              // logits of the wanted rows            [logit rows, outputs]
	NumBufs
)

// Kind identifies what an op computes.
type Kind uint8

// Kinds of ops. Each op is one step between two barriers; a forward can halt and resume at an index
// of Model.Ops.
const (
	// OpEmbed reads the embedding rows of the batch's tokens: X = Scale * E[token] (+ Types[0])
	// (+ PosEmbed[position]).
	OpEmbed Kind = iota
	// OpNorm computes H = RMSNorm(X, Norm), or X = LayerNorm(X, Norm, Shift) if it has a Shift.
	OpNorm
	// OpMatMul computes Outs[i] = In * Weights[W[i]]^T (+ Bias[i]); products of the same input are
	// one op (q, k and v). With an activation it computes Outs[0] = act(In * gate^T, In * up^T),
	// with gate W[0] and up W[1], or the activation of a single product.
	OpMatMul
	// OpRotate normalizes the heads of Q, K and V if the model does, rotates Q and K by position
	// and scales Q by position if the layer does, and stores K and V in the cache. A layer that
	// reads the keys and values of another layer has only Q.
	OpRotate
	// OpAttention computes Att = softmax(Scale * Q K^T) V over the cached positions of each row's
	// sequence that the layer attends to.
	OpAttention
	// OpAddNorm computes X += Scale * Y, then H = RMSNorm(X, Norm) if it has a Norm, or X =
	// LayerNorm(X, Norm, Shift). With Post, Y is normalized before the sum; with Gain, X is
	// multiplied after it.
	OpAddNorm
	// OpGather copies the rows of H whose logits are wanted, times Scale, in order, to the first
	// rows of Y.
	OpGather
	// OpRoute chooses the experts of each row and their weights by Router, and sorts (row, expert)
	// pairs by expert.
	OpRoute
	// OpDispatch copies H to Expert: one row per pair, times its weight if Router.ScaleInput is
	// set.
	OpDispatch
	// OpExperts is OpMatMul with a matrix per expert, which multiplies the pairs of the expert.
	OpExperts
	// OpCombine computes Y = the weighted sum of each row's pairs in Expert, best expert first.
	// With Accumulate the sum is added to Y, which is first multiplied by sigmoid(H * Gate) if
	// there is a Gate.
	OpCombine
	// OpRowNorm computes Outs[0] = RMSNorm(In, Norm) of whole rows. With Accumulate the result is
	// added to Outs[0], and In is overwritten.
	OpRowNorm
	// OpCap computes In = Cap * tanh(In / Cap) of the wanted rows.
	OpCap
	// OpInputs computes Inputs = (RMSNorm(Inputs * Scale, Norm) + sqrt(n) * Table[token]) / sqrt(2)
	// of the n elements of each layer.
	OpInputs
	// OpConv is a causal convolution. With Delta it computes Mix = silu(conv(Mix)), normalizes the
	// heads of queries and keys to length 1, scales queries by 1/sqrt(KeyDim), and turns Alpha and
	// Beta into decays and rates. Otherwise Mix holds b, c and x, and it computes Outs[0] = c *
	// conv(b*x).
	OpConv
	// OpDelta computes Att = the delta rule over Mix, Alpha and Beta.
	OpDelta
	// OpOutGate computes Att = act(In, RMSNorm(Att, Norm)) with a norm per head, or act(In, Att)
	// without Norm.
	OpOutGate
	// OpGate computes Outs[0] = act(Outs[0], In) with the elements of In that belong to the layer.
	OpGate
	// OpHeads computes Outs[0] = In * W^T per head, where W[0] is a stack with a matrix per head:
	// head h reads In from h*InStep on and writes Outs[0] from h*OutStep on. Without W it copies N
	// elements per head.
	OpHeads
	// OpLatent computes Q, K and V of latent attention by position, and stores K and V in the
	// cache.
	OpLatent
	// OpPool computes one row of each text that ends in the forward, from the rows of In by Pool,
	// and writes them to the first rows of Outs[0].
	OpPool
	// OpSoftmax computes In = softmax(In) of each wanted row.
	OpSoftmax
)

var kindNames = [...]string{"embed", "norm", "matmul", "rotate", "attention", "add-norm", "gather",
	"route", "dispatch", "experts", "combine", "row-norm", "cap", "inputs", "conv", "delta", "out-gate", "gate",
	"heads", "latent", "pool", "softmax"}

func (k Kind) String() string { return kindNames[k] }

// OfExperts reports whether ops of the kind route rows to experts, compute the experts or combine
// their results.
func (k Kind) OfExperts() bool {
	return k == OpRoute || k == OpDispatch || k == OpExperts || k == OpCombine
}

// Op is one step of a forward. The fields of Op itself belong to several kinds; each embedded
// struct has those of one kind or of few, which its comment names.
type Op struct {
	Kind  Kind
	Layer int
	Name  string // "blk.3.qkv", for traces and profiles

	In   Buf   // OpMatMul, OpExperts, OpHeads, OpRowNorm, OpCap, OpOutGate, OpGate, OpPool, OpSoftmax
	Outs []Buf // one buffer per product; OpRowNorm, OpGate, OpCombine, OpConv, OpHeads, OpPool: one
	// OpMatMul, OpExperts: of a gate and an up product with one output, or none; OpGate, OpOutGate
	Act   Activation
	Scale float32 // OpEmbed, OpAddNorm, OpGather, OpInputs
	// OpNorm, OpAddNorm: weight [hidden], OpAddNorm also nil; OpRowNorm: [width]; OpInputs: [n];
	// OpOutGate: [headDim] or nil
	Norm       *Vector
	Shift      *Vector // OpNorm, OpAddNorm: bias [hidden] of a LayerNorm; nil: it is an RMSNorm
	Heads      Heads   // OpRotate, OpAttention, OpLatent, OpHeads
	KVLayer    int     // OpRotate, OpAttention, OpLatent: layer whose keys and values are read
	Accumulate bool    // OpCombine, OpRowNorm
	N          int     // OpGate: elements of a layer; OpOutGate: of Att; OpHeads: of a head
	Cap        float32 // OpCap
	Pool       Pooling // OpPool
	Latent     Latent  // OpLatent

	EmbedOp
	AddNormOp
	ProductOp
	RotateOp
	AttentionOp
	ExpertOp
	HeadsOp
	RecurrentOp
}

// EmbedOp has the parameters of OpEmbed and OpInputs.
type EmbedOp struct {
	Types    *Vector // OpEmbed: [types][hidden] or nil
	PosEmbed *Vector // OpEmbed: [context][hidden] or nil
	Table    *Table  // OpInputs
}

// AddNormOp has the parameters of OpAddNorm.
type AddNormOp struct {
	Post *Vector // weight [hidden] or nil
	Gain *Vector // [1] or nil
}

// ProductOp has the matrices of OpMatMul, OpExperts and OpHeads.
type ProductOp struct {
	W      []int     // indices into Model.Weights
	Bias   []*Vector // one per weight, nil where there is none
	Wanted bool      // OpMatMul: only the wanted rows, which are the first rows of In
}

// RotateOp has the parameters of OpRotate; OpLatent has the rotation only.
type RotateOp struct {
	Rope                *Rope   // nil in a layer without positions
	QNorm, KNorm, VNorm *Vector // weights [headDim] or nil
	KeysAsValues        bool    // values are the keys before their norm
	AttnTemperature     *AttnTemperature
}

// AttentionOp has the parameters of OpAttention.
type AttentionOp struct {
	Attn  Attn
	Sinks *Vector // [heads], one more score per head without a value; or nil
}

// ExpertOp has the parameters of OpRoute, OpDispatch and OpCombine.
type ExpertOp struct {
	Router Router
	Gate   *Vector // OpCombine: [hidden] or nil
}

// HeadsOp has the strides of OpHeads, in elements.
type HeadsOp struct{ InStep, OutStep int }

// RecurrentOp has the parameters of OpConv and OpDelta.
type RecurrentOp struct {
	Conv  *Conv  // OpConv
	Delta *Delta // nil in a convolution without a delta rule
}

// StateOf returns the number of float32 elements of an op's state of one sequence: the last Width-1
// inputs of a convolution, or the head states of a delta rule with values padded to 16.
func (op *Op) StateOf() int {
	const lanes = 16
	switch op.Kind {
	case OpConv:
		return (op.Conv.Width - 1) * op.Conv.N
	case OpDelta:
		d := op.Delta
		return d.ValueHeads * d.KeyDim * ((d.ValueDim + lanes - 1) / lanes * lanes)
	}
	return 0
}
