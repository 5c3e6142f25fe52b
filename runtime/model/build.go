package model

import "fmt"

// build writes the decoder out: embedding, layers, head. Shapes stand beside each line; T is the number of rows.
func (b *builder) build() {
	d := b.m.Dims
	b.op(Op{Kind: OpEmbed, Name: "embed"}) //                       X [T, hidden]
	b.op(Op{Kind: OpNorm, Name: "blk.0.attn_norm", Norm: b.vector("blk.0.attn_norm.weight", d.Hidden)})
	for layer := range d.Layers {
		b.attention(layer)
		if b.arch.experts {
			b.mixture(layer)
		} else {
			b.feedForward(layer)
		}
		b.op(Op{Kind: OpAddNorm, Layer: layer, Name: b.nextNorm(layer), Norm: b.vector(b.nextNorm(layer)+".weight", d.Hidden)})
		if b.err != nil {
			return
		}
	}
	b.head()
}

func (b *builder) attention(layer int) {
	d := b.m.Dims
	name := func(s string) string { return fmt.Sprintf("blk.%d.%s", layer, s) }
	qWidth, kvWidth := d.Heads*d.HeadDim, d.KVHeads*d.HeadDim
	qkv := Op{Kind: OpMatMul, Layer: layer, Name: name("qkv"), In: BufH, Outs: []Buf{BufQ, BufK, BufV}}
	for i, role := range []string{"q", "k", "v"} { //                Q [T, heads*headDim], K and V [T, kvHeads*headDim]
		n := []int{qWidth, kvWidth, kvWidth}[i]
		qkv.W = append(qkv.W, b.weight(role, layer, name("attn_"+role+".weight"), n, d.Hidden))
		qkv.Bias = append(qkv.Bias, b.bias(name("attn_"+role+".bias"), n))
	}
	b.op(qkv)
	rotate := Op{Kind: OpRotate, Layer: layer, Name: name("rotate")}
	if b.arch.qkNorm {
		rotate.QNorm = b.vector(name("attn_q_norm.weight"), d.HeadDim)
		rotate.KNorm = b.vector(name("attn_k_norm.weight"), d.HeadDim)
	}
	b.op(rotate)
	b.op(Op{Kind: OpAttention, Layer: layer, Name: name("attention")}) // Att [T, heads*headDim]
	b.op(Op{Kind: OpMatMul, Layer: layer, Name: name("o"), In: BufAtt, Outs: []Buf{BufY}, Bias: []*Vector{nil},
		W: []int{b.weight("o", layer, name("attn_output.weight"), d.Hidden, qWidth)}})
	b.op(Op{Kind: OpAddNorm, Layer: layer, Name: name("ffn_norm"), Norm: b.vector(name("ffn_norm.weight"), d.Hidden)})
}

func (b *builder) feedForward(layer int) {
	d := b.m.Dims
	name := func(s string) string { return fmt.Sprintf("blk.%d.%s", layer, s) }
	b.op(Op{Kind: OpMatMul, Layer: layer, Name: name("gate_up"), In: BufH, Outs: []Buf{BufGate}, SwiGLU: true, Bias: []*Vector{nil, nil},
		W: []int{ //                                                 Gate [T, ffn]
			b.weight("gate", layer, name("ffn_gate.weight"), d.FFN, d.Hidden),
			b.weight("up", layer, name("ffn_up.weight"), d.FFN, d.Hidden),
		}})
	b.op(Op{Kind: OpMatMul, Layer: layer, Name: name("down"), In: BufGate, Outs: []Buf{BufY}, Bias: []*Vector{nil},
		W: []int{b.weight("down", layer, name("ffn_down.weight"), d.Hidden, d.FFN)}})
}

// mixture is the feed-forward of a mixture of experts; P is the number of (row, expert) pairs, used for each row.
func (b *builder) mixture(layer int) {
	d, e := b.m.Dims, b.m.Experts
	name := func(s string) string { return fmt.Sprintf("blk.%d.%s", layer, s) }
	b.op(Op{Kind: OpMatMul, Layer: layer, Name: name("router"), In: BufH, Outs: []Buf{BufRouter}, Bias: []*Vector{nil}, // Router [T, experts]
		W: []int{b.weight("router", layer, name("ffn_gate_inp.weight"), e.Count, d.Hidden)}})
	b.op(Op{Kind: OpRoute, Layer: layer, Name: name("route")})
	b.op(Op{Kind: OpDispatch, Layer: layer, Name: name("dispatch")}) //  Expert [P, hidden]
	b.op(Op{Kind: OpExperts, Layer: layer, Name: name("experts.gate_up"), In: BufExpert, Outs: []Buf{BufGate}, SwiGLU: true,
		W: []int{ //                                                  Gate [P, expert ffn]
			b.weight("gate", layer, name("ffn_gate_exps.weight"), e.FFN, d.Hidden, e.Count),
			b.weight("up", layer, name("ffn_up_exps.weight"), e.FFN, d.Hidden, e.Count),
		}})
	b.op(Op{Kind: OpExperts, Layer: layer, Name: name("experts.down"), In: BufGate, Outs: []Buf{BufExpert},
		W: []int{b.weight("down", layer, name("ffn_down_exps.weight"), d.Hidden, e.FFN, e.Count)}}) // Expert [P, hidden]
	b.op(Op{Kind: OpCombine, Layer: layer, Name: name("combine")}) // Y [T, hidden]
}

// nextNorm is the norm that follows a layer: the next layer's, or the output norm.
func (b *builder) nextNorm(layer int) string {
	if layer+1 < b.m.Dims.Layers {
		return fmt.Sprintf("blk.%d.attn_norm", layer+1)
	}
	return "output_norm"
}

func (b *builder) head() {
	d := b.m.Dims
	b.op(Op{Kind: OpGather, Name: "gather"}) //                     Y [wanted rows, hidden]
	tensor := "output.weight"
	if !b.has(tensor) {
		b.m.Tied, tensor = true, "token_embd.weight"
	}
	b.op(Op{Kind: OpMatMul, Name: "head", In: BufY, Outs: []Buf{BufLogits}, Bias: []*Vector{nil},
		W: []int{b.weight("head", -1, tensor, d.Vocab, d.Hidden)}})
}

func (b *builder) op(o Op) { b.m.Ops = append(b.m.Ops, o) }

func (b *builder) weight(role string, layer int, tensor string, n, k int, stack ...int) int {
	t := b.matrix(tensor, n, k, stack...)
	w := Weight{Role: role, Layer: layer, Tensor: t, N: n, K: k}
	if len(stack) > 0 {
		w.Stack = stack[0]
	}
	b.m.Weights = append(b.m.Weights, w)
	return len(b.m.Weights) - 1
}

// bias returns a projection's bias: required where the architecture has it, taken where the file happens to carry it.
func (b *builder) bias(name string, n int) *Vector {
	if !b.has(name) && !b.arch.qkvBias {
		return nil
	}
	return b.vector(name, n)
}
