package model

import (
	"cmp"
	"fmt"
	"iter"
	"math"

	"sandwich/runtime/gguf"
)

// embedTensor holds the rows of tokens, and is the head of a tied model; headTensor is the head of
// any other.
const (
	embedTensor = "token_embd.weight"
	headTensor  = "output.weight"
)

// Builder is what an architecture writes its decoder with. T is the number of rows of a forward.
// Tensors are named as in GGUF, without "blk.N." and ".weight".
type Builder struct {
	Config
	m      *Model
	layer  int   // that is being written; outside before and after the layers
	heads  Heads // of the layer at hand, which changes them where its family does
	keeper int   // of the keys and values of the layer at hand
	// What the next norm adds to the residual stream: Y of layer from, if anything wrote it.
	pending bool
	from    int
	sum     Residual
}

const outside = -1

// Model writes the configuration out: ops with the names and shapes of their tensors, and no
// values.
func (c Config) Model() (*Model, error) {
	arch, err := archOf(c.Arch)
	if err != nil {
		return nil, err
	}
	b := &Builder{Config: c, layer: outside,
		m: &Model{Arch: c.Arch, Name: c.Name, Dims: c.Dims, Experts: c.Experts, Eps: float32(c.Eps), Tied: c.tied(),
			Outputs: c.Vocab, Pooling: c.Pooling, Scores: c.Scoring.Count > 0}}
	arch.Decoder(b)
	return b.m, nil
}

// Of writes out the model that a file holds, as its metadata say: Model of ConfigOf.
func Of(f *gguf.File) (*Model, error) {
	c, err := ConfigOf(f)
	if err != nil {
		return nil, err
	}
	return c.Model()
}

// Layers counts the layers; what is written meanwhile belongs to the one at hand.
func (b *Builder) Layers() iter.Seq[int] {
	return func(yield func(int) bool) {
		for b.layer = range b.Config.Layers {
			if b.heads = b.headsOf(b.layer); !yield(b.layer) {
				break
			}
		}
		b.layer = outside
	}
}

// name is that of an op or a tensor of the layer at hand.
func (b *Builder) name(s string) string {
	if b.layer == outside {
		return s
	}
	return fmt.Sprintf("blk.%d.%s", b.layer, s)
}

func (b *Builder) op(kind Kind, name string, o Op) {
	o.Kind, o.Name, o.Layer = kind, b.name(name), max(0, b.layer)
	b.m.Ops = append(b.m.Ops, o)
}

// wroteY notes that Y waits to be added to the residual stream.
func (b *Builder) wroteY() { b.pending, b.from, b.sum = true, b.layer, Residual{Scale: 1} }

func (b *Builder) vector(tensor string, n int, need Need) *Vector {
	if tensor == "" || need == Never {
		return nil
	}
	return &Vector{Name: b.name(tensor), N: n, Optional: need == IfPresent || need == Usually, Usual: need == Usually}
}

// Embed is X [T, hidden] = scale * the rows of the batch's tokens.
func (b *Builder) Embed(scale float32) { b.op(OpEmbed, "embed", Op{Scale: scale}) }

// EmbedPlaces is X [T, hidden] = the rows of the batch's tokens, plus that of token type 0 where
// there are types, plus, learned, those of their positions.
func (b *Builder) EmbedPlaces(learned bool) {
	o := Op{Scale: 1}
	if b.Types > 0 {
		o.Types = &Vector{Name: "token_types.weight", N: b.Hidden, Stack: b.Types}
	}
	if learned {
		o.Places = &Vector{Name: "position_embd.weight", N: b.Hidden, Stack: b.Context}
	}
	b.op(OpEmbed, "embed", o)
}

// Residual is how the output of a block joins the residual stream: X += Scale * norm(Y), with a
// norm where Post names its weight [hidden].
// With a Gain [1] the stream is multiplied by it behind the sum.
type Residual struct {
	Post  string
	Scale float32
	Gain  string
}

// Residual changes it for the block just written, where the sum is not plain.
func (b *Builder) Residual(r Residual) { b.sum = r }

// Norm is H [T, hidden] = RMSNorm(X), with weight [hidden]. What the block before wrote to Y is
// added to X in the same op.
func (b *Builder) Norm(tensor string) { b.norm(tensor, Op{}) }

// LayerNorm is X [T, hidden] = LayerNorm(X), with weight and bias [hidden]: what the block before
// wrote to Y is added to X before it, and blocks read what is made of the sum.
func (b *Builder) LayerNorm(tensor string) {
	b.norm(tensor, Op{Shift: b.vector(tensor+".bias", b.Hidden, Always)})
}

func (b *Builder) norm(tensor string, o Op) {
	o.Norm = b.vector(tensor+".weight", b.Hidden, Always)
	if !b.pending {
		b.op(OpNorm, tensor, o)
		return
	}
	b.add(tensor, o)
}

// Sum adds what the block before wrote to Y to X, and makes no H.
func (b *Builder) Sum(name string) { b.add(name, Op{}) }

func (b *Builder) add(name string, o Op) {
	o.Kind, o.Name, o.Layer, o.Scale = OpAddNorm, b.name(name), b.from, b.sum.Scale
	if b.sum.Post != "" {
		o.Post = &Vector{Name: fmt.Sprintf("blk.%d.%s.weight", b.from, b.sum.Post), N: b.Hidden}
	}
	if b.sum.Gain != "" {
		o.Gain = &Vector{Name: fmt.Sprintf("blk.%d.%s.weight", b.from, b.sum.Gain), N: 1, Optional: true}
	}
	b.m.Ops = append(b.m.Ops, o)
	b.pending = false
}

// RowNorm is Buf [T, n] = RMSNorm(Buf) with weight [n].
func (b *Builder) RowNorm(tensor string, buf Buf, n int) {
	b.op(OpRowNorm, tensor, Op{In: buf, Outs: []Buf{buf}, Norm: b.vector(tensor+".weight", n, Always)})
}

// Product is one matrix product, Out = In * W^T + bias with W [N, K], or [Stack, N, K] where there
// is one matrix for each expert.
type Product struct {
	Role        string // by which types are chosen and matrices are cut: q k v o gate up down router
	Tensor      string // whose name ends in .weight, and that of its bias [N] in .bias
	N, K, Stack int
	Row, Rows   int // where in each matrix of the tensor this begins, and how many rows it has there; 0: it is N
	// which rows of the tensor they are; nil: those from Row on
	Picks []Pick
	Bias  Need
	Out   Buf
}

// MatMul is one product for each of those that read In, together.
func (b *Builder) MatMul(name string, in Buf, products ...Product) {
	b.product(name, Op{In: in}, products)
}

// Gated is Out = act(gate, up), of the two products' one output buffer.
func (b *Builder) Gated(name string, act Activation, in Buf, gate, up Product) {
	b.product(name, Op{In: in, Act: act}, []Product{gate, up})
}

func (b *Builder) product(name string, o Op, products []Product) {
	kind := OpMatMul
	for i, p := range products {
		o.W = append(o.W, len(b.m.Weights))
		bias := b.vector(p.Tensor+".bias", p.N, p.Bias)
		if bias != nil {
			bias.Stack = p.Stack
			bias.At, bias.Of = p.Row, p.Rows
		}
		o.Bias = append(o.Bias, bias)
		if o.Act == NoActivation || i == 0 {
			o.Outs = append(o.Outs, p.Out)
		}
		if p.Stack > 0 {
			kind = OpExperts
		}
		w := Weight{Name: b.name(p.Tensor + ".weight"), Role: p.Role, Layer: b.layer,
			N: p.N, K: p.K, Stack: p.Stack, Row: p.Row, Rows: cmp.Or(p.Rows, p.N), Picks: p.Picks,
			Of: [2]int{p.N, p.K}}
		if p.Role != "router" { // what a router reads has scales of its own (gemma4)
			w.Scale = b.vector(p.Tensor+".scale", w.Matrices(), IfPresent)
		}
		b.m.Weights = append(b.m.Weights, w)
	}
	b.op(kind, name, o)
	if o.Outs[0] == BufY {
		b.wroteY()
	}
}

// Rope is the configuration's rotation with the values that r gives in its place. Layers share one
// by sharing the pointer. Factors that the file may have are those of the configuration's rotation:
// another base has none.
func (b *Builder) Rope(r Rope) *Rope {
	if r.Base == 0 {
		r.Base, r.Yarn = b.RopeBase, b.Yarn
		r.Factors = &Vector{Name: "rope_freqs.weight", N: b.ropeDim() / 2, Optional: true}
		if b.Original > 0 {
			n := b.ropeDim() / 2
			r.Long = &Long{Original: b.Original,
				Short: &Vector{Name: "rope_factors_short.weight", N: n, Optional: true},
				Long:  &Vector{Name: "rope_factors_long.weight", N: n, Optional: true}}
		}
		if b.Llama3 != nil {
			r.Factors.Data = b.Llama3.factors(r.Base, b.ropeDim())
		}
		r.Gain = b.ropeGain()
		if r.Scale == 0 {
			r.Scale = b.ropeScale()
		}
	}
	r.Scale, r.Gain = cmp.Or(r.Scale, 1), cmp.Or(r.Gain, 1)
	r.Dim, r.Still, r.Rule = cmp.Or(r.Dim, b.ropeDim()), b.Still, b.RopeRule
	return &r
}

// Local is the rotation of layers with a window where that is not the configuration's: of a base of
// its own, and not scaled.
func (b *Builder) Local(base float64, neox bool) *Rope { return b.Rope(Rope{Base: base, Neox: neox}) }

// Near is the configuration's rotation by the base of layers with a window, where that is another:
// scaled as in the other layers, unless Windows.Scale says how.
func (b *Builder) Near(far *Rope) *Rope {
	base, scale := cmp.Or(b.Windows.Base, far.Base), cmp.Or(b.Windows.Scale, far.Scale)
	if base == far.Base && scale == far.Scale {
		return far
	}
	near := b.Rope(Rope{Neox: far.Neox, Scale: scale})
	near.Base = base
	return near
}

// Rotation is what happens to the heads of Q and K before attention.
type Rotation struct {
	Rope         *Rope  // nil: nothing
	QNorm, KNorm string // tensors [headDim] of a norm of each head before it is rotated; "" for none
	Plain        bool   // heads of Q and K are normalized without a weight
	VNorm        bool   // values are normalized too, without a weight
	KeysAsValues bool   // there are none but the keys, as they are before their norm
	Temper       *Temper
	Keeper       int // an earlier layer whose K and V this one reads, plus 1; 0: its own
}

// Rotate turns Q and K, and puts K and V into the cache.
func (b *Builder) Rotate(r Rotation) {
	o := Op{Rope: r.Rope, Heads: b.heads, Temper: r.Temper, KeyVal: r.KeysAsValues, Keeper: b.layer}
	if r.Keeper > 0 {
		o.Keeper = r.Keeper - 1
	}
	if b.keeper = o.Keeper; r.QNorm != "" {
		o.QNorm = b.vector(r.QNorm+".weight", b.heads.Dim, Always)
	}
	if r.KNorm != "" && r.Keeper == 0 {
		o.KNorm = b.vector(r.KNorm+".weight", b.heads.Dim, Always)
	}
	if r.Plain {
		o.QNorm, o.KNorm = plain(b.heads.Dim), plain(b.heads.Dim)
	}
	if r.VNorm && r.Keeper == 0 {
		o.VNorm = plain(b.heads.Dim)
	}
	b.op(OpRotate, "rotate", o)
}

// plain is the weight of a norm that has none.
func plain(n int) *Vector {
	v := &Vector{N: n, Data: make([]float32, n)}
	for i := range v.Data {
		v.Data[i] = 1
	}
	return v
}

// HeadScale is 1/sqrt(headDim), the usual scale of attention scores.
func (c Config) HeadScale() float32 { return float32(1 / math.Sqrt(float64(c.HeadDim))) }

// Attend is Att [T, heads*headDim].
func (b *Builder) Attend(a Attn) {
	a.Both = a.Both || b.Both
	b.op(OpAttention, "attention", Op{Attn: a, Heads: b.heads, Keeper: b.keeper})
}

// AttendSinks is Attend with one more score of each head, tensor [heads].
func (b *Builder) AttendSinks(a Attn, tensor string) {
	b.op(OpAttention, "attention", Op{Attn: a, Heads: b.heads, Keeper: b.keeper,
		Sinks: b.vector(tensor+".weight", b.heads.Q, Always)})
}

// Head is Logits [wanted rows, vocab] = scale * H * W^T, with W [vocab, hidden]. A model of the
// family that is pooled has none: its texts' rows of H become one.
func (b *Builder) Head(scale float32) { b.HeadBias(scale, Never) }

// HeadBias is Head with a bias [vocab].
func (b *Builder) HeadBias(scale float32, bias Need) {
	if b.Pooling != NoPooling {
		b.Pool(BufH)
		return
	}
	b.op(OpGather, "gather", Op{Scale: scale}) // Y [wanted rows, hidden]
	tensor, second := headTensor, b.vector("output.scale", 1, IfPresent)
	if b.Tied {
		tensor, second = embedTensor, nil
	}
	b.m.Weights = append(b.m.Weights, Weight{Name: tensor, Role: "head", Layer: outside, N: b.Vocab, K: b.Hidden,
		Rows: b.Vocab, Of: [2]int{b.Vocab, b.Hidden}, Scale: second})
	b.op(OpMatMul, "head", Op{In: BufY, Wanted: true, Outs: []Buf{BufLogits},
		Bias: []*Vector{b.vector("output.bias", b.Vocab, bias)}, W: []int{len(b.m.Weights) - 1}})
}

// Cap bounds the logits: most*tanh(logits/most).
func (b *Builder) Cap(most float64) {
	if most > 0 && b.Pooling == NoPooling {
		b.op(OpCap, "cap", Op{In: BufLogits, Cap: float32(most)})
	}
}
