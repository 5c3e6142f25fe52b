package model

// The blocks that most families share. P is the number of (row, expert) pairs of a mixture, used
// for each row.

// QKV reads H [T, hidden]: Q [T, heads*headDim], K and V [T, kvHeads*headDim].
func (b *Builder) QKV(bias Need) {
	q, kv := b.Heads*b.HeadDim, b.KVHeads*b.HeadDim
	b.MatMul("qkv", BufH,
		Product{Role: "q", Tensor: "attn_q", N: q, K: b.Hidden, Bias: bias, Out: BufQ},
		Product{Role: "k", Tensor: "attn_k", N: kv, K: b.Hidden, Bias: bias, Out: BufK},
		Product{Role: "v", Tensor: "attn_v", N: kv, K: b.Hidden, Bias: bias, Out: BufV})
}

// AttnOut reads Att [T, heads*headDim]: Y [T, hidden].
func (b *Builder) AttnOut() {
	b.MatMul("o", BufAtt, Product{Role: "o", Tensor: "attn_output", N: b.Hidden, K: b.Heads * b.HeadDim, Out: BufY})
}

// FFN reads H [T, hidden]: Gate [T, ffn], then Y [T, hidden].
func (b *Builder) FFN(act Activation) {
	b.Gated("gate_up", act, BufH,
		Product{Role: "gate", Tensor: "ffn_gate", N: b.Config.FFN, K: b.Hidden, Out: BufGate},
		Product{Role: "up", Tensor: "ffn_up", N: b.Config.FFN, K: b.Hidden, Out: BufGate})
	b.MatMul("down", BufGate, Product{Role: "down", Tensor: "ffn_down", N: b.Hidden, K: b.Config.FFN, Out: BufY})
}

// Mixture reads H [T, hidden]: Router [T, experts], Expert [P, hidden], Gate [P, expert ffn],
// Expert [P, hidden], then Y [T, hidden].
func (b *Builder) Mixture(act Activation, router Router) {
	e := b.Experts
	b.MatMul("router", BufH, Product{Role: "router", Tensor: "ffn_gate_inp", N: e.Count, K: b.Hidden, Out: BufRouter})
	b.op(OpRoute, "route", Op{Router: router})
	b.op(OpDispatch, "dispatch", Op{})
	b.Gated("experts.gate_up", act, BufExpert,
		Product{Role: "gate", Tensor: "ffn_gate_exps", N: e.FFN, K: b.Hidden, Stack: e.Count, Out: BufGate},
		Product{Role: "up", Tensor: "ffn_up_exps", N: e.FFN, K: b.Hidden, Stack: e.Count, Out: BufGate})
	b.MatMul("experts.down", BufGate,
		Product{Role: "down", Tensor: "ffn_down_exps", N: b.Hidden, K: e.FFN, Stack: e.Count, Out: BufExpert})
	b.op(OpCombine, "combine", Op{})
	b.wroteY()
}
