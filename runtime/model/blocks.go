package model

import "sandwich/plans"

// The blocks that most families share. P is the number of (row, expert) pairs of a mixture, used
// for each row.

// projection is how the inputs of attention are made, where that is not the usual way.
type projection struct {
	In    Buf  // BufX or BufH, [T, hidden]
	Bias  Need // of q, k and v
	Fused bool // the three are rows of one tensor, attn_qkv, in that order
	Whole bool // heads belong together: no rank can have some of them alone
	Gated bool // rows of attn_q are, by heads, a query and the gate of its output, which goes to Z
	NoV   bool // there are no values but the keys
	NoKV  bool // keys and values are those of an earlier layer
}

// QKV reads H [T, hidden]: Q [T, heads*headDim], K and V [T, kvHeads*headDim].
func (b *Builder) QKV(bias Need) { b.project(projection{In: BufH, Bias: bias}) }

// project is QKV of any kind.
func (b *Builder) project(p projection) {
	p.Fused = p.Fused || b.Fused && !p.NoV && !p.NoKV
	q, kv := b.heads.Q*b.heads.Dim, b.heads.KV*b.heads.Dim
	products := []Product{
		{Role: "q", Tensor: "attn_q", N: q, K: b.Hidden, Bias: p.Bias, Out: BufQ},
		{Role: "k", Tensor: "attn_k", N: kv, K: b.Hidden, Bias: p.Bias, Out: BufK},
		{Role: "v", Tensor: "attn_v", N: kv, K: b.Hidden, Bias: p.Bias, Out: BufV}}
	switch {
	case p.Gated:
		dim, gate := b.heads.Dim, whole("gate", "attn_q", q, b.Hidden, BufZ)
		products[0].Role, products[0].Rows, gate.Rows = plans.RoleWhole+"q", 2*q, 2*q
		products[0].Picks, gate.Picks = []Pick{{0, dim, 2 * dim, q}}, []Pick{{dim, dim, 2 * dim, q}}
		products = append(products, gate)
		if p.Fused {
			for i := range products {
				products[i].Tensor, products[i].Rows = "attn_qkv", 2*(q+kv)
			}
			products[1].Row, products[2].Row = 2*q, 2*q+kv
		}
	case p.Fused:
		fuse("attn_qkv", products)
	case p.NoKV:
		products = products[:1]
	case p.NoV:
		products = products[:2]
	}
	for i := range products {
		if p.Whole {
			products[i].Role = plans.RoleWhole + products[i].Role
		}
	}
	b.MatMul("qkv", p.In, products...)
}

// fuse makes products rows of one tensor.
func fuse(tensor string, products []Product) {
	rows := 0
	for i := range products {
		products[i].Tensor, products[i].Row = tensor, rows
		rows += products[i].N
	}
	for i := range products {
		products[i].Rows = rows
	}
}

// AttnOut reads Att [T, heads*headDim]: Y [T, hidden].
func (b *Builder) AttnOut() { b.AttnOutBias(Never) }

// AttnOutBias is AttnOut with a bias [hidden].
func (b *Builder) AttnOutBias(bias Need) {
	b.MatMul("o", BufAtt, Product{Role: "o", Tensor: "attn_output", N: b.Hidden, K: b.heads.Q * b.heads.Dim, Bias: bias,
		Out: BufY})
}

// Feed is a feed-forward block, where it is not the usual one.
type Feed struct {
	In     Buf // BufX or BufH, [T, hidden]
	Act    Activation
	Fused  bool // gate and up are rows of one tensor, ffn_up, in that order
	Single bool // there is no gate
	Bias   Need
	// Beside says that the model has experts, in this layer or in others: the block is not cut.
	Beside bool
}

// FFN reads H [T, hidden]: Gate [T, ffn], then Y [T, hidden].
func (b *Builder) FFN(act Activation) { b.Feed(Feed{In: BufH, Act: act}) }

// Feed is FFN of any kind.
func (b *Builder) Feed(f Feed) {
	n := b.ffnOf(b.layer)
	gateUp := []Product{
		{Role: f.role("gate"), Tensor: "ffn_gate", N: n, K: b.Hidden, Bias: f.Bias, Out: f.out()},
		{Role: f.role("up"), Tensor: "ffn_up", N: n, K: b.Hidden, Bias: f.Bias, Out: f.out()}}
	switch {
	case f.Single:
		b.product("up", Op{In: f.In, Act: f.Act}, gateUp[1:])
	case f.Fused:
		fuse("ffn_up", gateUp)
		fallthrough
	default:
		b.Gated("gate_up", f.Act, f.In, gateUp[0], gateUp[1])
	}
	b.MatMul("down", f.out(), Product{Role: f.role("down"), Tensor: "ffn_down", N: b.Hidden, K: n, Bias: f.Bias,
		Out: BufY})
}

func (f Feed) role(r string) string {
	if f.Beside {
		return shared + r
	}
	return r
}

func (f Feed) out() Buf {
	if f.Beside {
		return BufShared
	}
	return BufGate
}

// shared begins the roles of the matrices that every row is multiplied by in a model that has
// experts too.
const shared = "shared_"

// Shared reads H [T, hidden]: Shared [T, shared ffn], then Y [T, hidden], to which a Mixture with
// Onto adds.
func (b *Builder) Shared(act Activation) {
	n := b.Experts.Shared
	b.Gated("shared.gate_up", act, BufH,
		Product{Role: shared + "gate", Tensor: "ffn_gate_shexp", N: n, K: b.Hidden, Out: BufShared},
		Product{Role: shared + "up", Tensor: "ffn_up_shexp", N: n, K: b.Hidden, Out: BufShared})
	b.MatMul("shared.down", BufShared, Product{Role: shared + "down", Tensor: "ffn_down_shexp", N: b.Hidden, K: n,
		Out: BufY})
}

// Mixture is a block of experts.
type Mixture struct {
	Act    Activation
	Router Router
	Bias   Need   // of the router and the experts' matrices
	Onto   bool   // Y holds what is added to: that of Shared
	Gate   string // tensor [hidden] of a gate of what Y holds; "" for none
	Into   Buf    // BufY, where it is 0, or BufH
}

// Mix reads H [T, hidden]: Router [T, experts], Expert [P, hidden], Gate [P, expert ffn], Expert
// [P, hidden], then Y [T, hidden].
func (b *Builder) Mix(m Mixture) {
	b.Route(m)
	b.Consult(m)
}

// Route reads H [T, hidden]: Router [T, experts], and chooses by it.
func (b *Builder) Route(m Mixture) {
	e := b.Experts
	b.MatMul("router", BufH, Product{Role: "router", Tensor: "ffn_gate_inp", N: e.Count, K: b.Hidden, Bias: m.Bias,
		Out: BufRouter})
	b.op(OpRoute, "route", Op{Router: m.Router})
}

// Consult reads H [T, hidden] with the experts that were chosen.
func (b *Builder) Consult(m Mixture) {
	e := b.Experts
	gateUp := []Product{
		{Role: "gate", Tensor: "ffn_gate_exps", N: e.FFN, K: b.Hidden, Stack: e.Count, Bias: m.Bias, Out: BufGate},
		{Role: "up", Tensor: "ffn_up_exps", N: e.FFN, K: b.Hidden, Stack: e.Count, Bias: m.Bias, Out: BufGate}}
	if b.FusedExperts {
		fuse("ffn_gate_up_exps", gateUp)
	}
	b.op(OpDispatch, "dispatch", Op{Router: m.Router})
	b.Gated("experts.gate_up", m.Act, BufExpert, gateUp[0], gateUp[1])
	b.MatMul("experts.down", BufGate,
		Product{Role: "down", Tensor: "ffn_down_exps", N: b.Hidden, K: e.FFN, Stack: e.Count, Bias: m.Bias,
			Out: BufExpert})
	into := BufY
	if m.Into == BufH {
		into = BufH
	}
	o := Op{Router: m.Router, Onto: m.Onto, Outs: []Buf{into}}
	if m.Gate != "" {
		o.Gate = b.vector(m.Gate+".weight", b.Hidden, Always)
	}
	b.op(OpCombine, "combine", o)
	if into == BufY {
		b.wroteY()
	}
}
