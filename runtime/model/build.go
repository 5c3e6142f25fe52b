package model

import (
	"cmp"
	"fmt"
	"iter"
)

// Builder collects the ops of an architecture. In its comments, T is the number of rows of a
// forward. Tensors are named as in GGUF, without "blk.N." and ".weight".
type Builder struct {
	Config
	m          *Model
	layer      int   // current layer; outside before and after the layers
	LayerHeads Heads // of the current layer
	kvLayer    int   // layer whose keys and values the current one reads
	// The next norm adds Y, which layer from wrote, to the residual stream if pending is set.
	pending bool
	from    int
	sum     Residual
}

// Build calls decoder to write the ops of a model with this configuration and returns the model.
// It has the names and shapes of the tensors, but not their values.
func (c Config) Build(decoder func(*Builder)) *Model {
	b := &Builder{Config: c, layer: Outside,
		m: &Model{Arch: c.Arch, Name: c.Name, Dims: c.Dims, Experts: c.Experts, Eps: float32(c.Eps), Tied: c.TiedHead(),
			Outputs: c.Vocab, Pooling: c.Pooling, Scores: c.Scoring.Count > 0}}
	decoder(b)
	return b.m
}

// Layers iterates over the layers; ops that are added in the loop belong to the current one.
func (b *Builder) Layers() iter.Seq[int] {
	return func(yield func(int) bool) {
		for b.layer = range b.Config.Layers {
			if b.LayerHeads = b.HeadsOf(b.layer); !yield(b.layer) {
				break
			}
		}
		b.layer = Outside
	}
}

// name returns the full name of an op or a tensor of the current layer.
func (b *Builder) name(s string) string {
	if b.layer == Outside {
		return s
	}
	return fmt.Sprintf("blk.%d.%s", b.layer, s)
}

// Op adds an op.
func (b *Builder) Op(kind Kind, name string, o Op) {
	o.Kind, o.Name, o.Layer = kind, b.name(name), max(0, b.layer)
	b.m.Ops = append(b.m.Ops, o)
}

// HoldY records that Y is not complete, so that the next norm must not add it to the residual
// stream.
func (b *Builder) HoldY() { b.pending = false }

// WroteY records that Y must be added to the residual stream.
func (b *Builder) WroteY() { b.pending, b.from, b.sum = true, b.layer, Residual{Scale: 1} }

// Vector returns a vector of the current layer, nil if it is never present.
func (b *Builder) Vector(tensor string, n int, need Need) *Vector {
	if tensor == "" || need == Never {
		return nil
	}
	return &Vector{Name: b.name(tensor), N: n, Optional: need == IfPresent || need == Usually,
		Expected: need == Usually}
}

// Embed writes X [T, hidden] = scale * the embedding rows of the batch's tokens.
func (b *Builder) Embed(scale float32) { b.Op(OpEmbed, "embed", Op{Scale: scale}) }

// EmbedPositions writes X [T, hidden] = the embedding rows of the batch's tokens, plus the row of
// token type 0 if the model has types, plus the rows of the positions if learned is set.
func (b *Builder) EmbedPositions(learned bool) {
	o := Op{Scale: 1}
	if b.Types > 0 {
		o.Types = &Vector{Name: "token_types.weight", N: b.Hidden, Stack: b.Types}
	}
	if learned {
		o.PosEmbed = &Vector{Name: "position_embd.weight", N: b.Hidden, Stack: b.Context}
	}
	b.Op(OpEmbed, "embed", o)
}

// Residual describes how the output of a block is added to the residual stream: X += Scale * Y. If
// Post names a weight [hidden], Y is normalized first; if Gain names a weight [1], X is multiplied
// by it after the sum.
type Residual struct {
	Post  string
	Scale float32
	Gain  string
}

// Residual sets how the output of the last block is added; the default is X += Y.
func (b *Builder) Residual(r Residual) { b.sum = r }

// Norm writes H [T, hidden] = RMSNorm(X), with weight [hidden]. If the previous block wrote Y, the
// same op adds Y to X first.
func (b *Builder) Norm(tensor string) { b.norm(tensor, Op{}) }

// LayerNorm writes X [T, hidden] = LayerNorm(X), with weight and bias [hidden]. If the previous
// block wrote Y, the same op adds Y to X first.
func (b *Builder) LayerNorm(tensor string) {
	b.norm(tensor, Op{Shift: b.Vector(tensor+".bias", b.Hidden, Always)})
}

// norm adds a norm of X, with the sum of a pending Y.
func (b *Builder) norm(tensor string, o Op) {
	o.Norm = b.Vector(tensor+".weight", b.Hidden, Always)
	if !b.pending {
		b.Op(OpNorm, tensor, o)
		return
	}
	b.add(tensor, o)
}

// Sum adds Y of the previous block to X, without a norm.
func (b *Builder) Sum(name string) { b.add(name, Op{}) }

// add adds the op that adds Y to X.
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

// RowNorm writes buf [T, n] = RMSNorm(buf) with weight [n].
func (b *Builder) RowNorm(tensor string, buf Buf, n int) {
	b.Op(OpRowNorm, tensor, Op{In: buf, Outs: []Buf{buf}, Norm: b.Vector(tensor+".weight", n, Always)})
}

// Product is one matrix product, Out = In * W^T + bias with W [N, K], or with W [Stack, N, K] if
// each expert has a matrix.
type Product struct {
	Role        string // determines the type and the division among ranks: q k v o gate up down router
	Tensor      string // tensor name without .weight; the bias [N] has the same name with .bias
	N, K, Stack int
	Row, Rows   int        // first row in each matrix of the tensor, and rows of the matrix; Rows 0 means N
	RowRanges   []RowRange // rows of the tensor; nil: N rows from Row on
	Bias        Need
	Out         Buf
}

// MatMul adds one op with several products of the same input.
func (b *Builder) MatMul(name string, in Buf, products ...Product) {
	b.product(name, Op{In: in}, products)
}

// Gated writes act(gate, up), of two products with the same output buffer.
func (b *Builder) Gated(name string, act Activation, in Buf, gate, up Product) {
	b.product(name, Op{In: in, Act: act}, []Product{gate, up})
}

// product adds the weights of products and the op that o describes.
func (b *Builder) product(name string, o Op, products []Product) {
	kind := OpMatMul
	for i, p := range products {
		o.W = append(o.W, len(b.m.Weights))
		bias := b.Vector(p.Tensor+".bias", p.N, p.Bias)
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
			N: p.N, K: p.K, Stack: p.Stack, Row: p.Row, Rows: cmp.Or(p.Rows, p.N), RowRanges: p.RowRanges,
			Of: [2]int{p.N, p.K}}
		if p.Role != "router" { // what a router reads has scales of its own (gemma4)
			w.Scale = b.Vector(p.Tensor+".scale", w.Matrices(), IfPresent)
		}
		b.m.Weights = append(b.m.Weights, w)
	}
	b.Op(kind, name, o)
	if o.Outs[0] == BufY {
		b.WroteY()
	}
}

// Head writes Logits [wanted rows, vocab] = scale * H * W^T, with W [vocab, hidden]. In a pooled
// model it writes the pooled rows of H instead.
func (b *Builder) Head(scale float32) { b.HeadBias(scale, Never) }

// HeadBias is Head with a bias [vocab].
func (b *Builder) HeadBias(scale float32, bias Need) {
	if b.Pooling != NoPooling {
		b.Pool(BufH)
		return
	}
	b.Op(OpGather, "gather", Op{Scale: scale}) // Y [wanted rows, hidden]
	tensor, second := HeadTensor, b.Vector("output.scale", 1, IfPresent)
	if b.Tied {
		tensor, second = EmbedTensor, nil
	}
	b.m.Weights = append(b.m.Weights, Weight{Name: tensor, Role: "head", Layer: Outside, N: b.Vocab, K: b.Hidden,
		Rows: b.Vocab, Of: [2]int{b.Vocab, b.Hidden}, Scale: second})
	b.Op(OpMatMul, "head", Op{In: BufY, Outs: []Buf{BufLogits}, ProductOp: ProductOp{Wanted: true,
		Bias: []*Vector{b.Vector("output.bias", b.Vocab, bias)}, W: []int{len(b.m.Weights) - 1}}})
}

// Cap adds a soft cap of the logits, limit*tanh(logits/limit), if limit is positive.
func (b *Builder) Cap(limit float64) {
	if limit > 0 && b.Pooling == NoPooling {
		b.Op(OpCap, "cap", Op{In: BufLogits, Cap: float32(limit)})
	}
}
