package model

import "sandwich/plans"

// Blocks that most families share. P is the number of (row, expert) pairs of a mixture.

// Projection describes the products of queries, keys and values.
type Projection struct {
	In    Buf  // BufX or BufH, [T, hidden]
	Bias  Need // of q, k and v
	Fused bool // the three are rows of one tensor, attn_qkv, in that order
	Whole bool // heads cannot be divided among ranks
	Gated bool // rows of attn_q are, by heads, a query and the gate of its output, which goes to Z
	NoV   bool // values are the keys
	NoKV  bool // keys and values are those of an earlier layer
}

// QKV reads H [T, hidden] and writes Q [T, heads*headDim], K and V [T, kvHeads*headDim].
func (b *Builder) QKV(bias Need) { b.Project(Projection{In: BufH, Bias: bias}) }

// Project writes Q, K and V as QKV does, by any projection.
func (b *Builder) Project(p Projection) {
	p.Fused = p.Fused || b.Fused && !p.NoV && !p.NoKV
	q, kv := b.LayerHeads.Q*b.LayerHeads.Dim, b.LayerHeads.KV*b.LayerHeads.Dim
	products := []Product{
		{Role: "q", Tensor: "attn_q", N: q, K: b.Hidden, Bias: p.Bias, Out: BufQ},
		{Role: "k", Tensor: "attn_k", N: kv, K: b.Hidden, Bias: p.Bias, Out: BufK},
		{Role: "v", Tensor: "attn_v", N: kv, K: b.Hidden, Bias: p.Bias, Out: BufV}}
	switch {
	case p.Gated:
		dim, gate := b.LayerHeads.Dim, whole("gate", "attn_q", q, b.Hidden, BufZ)
		products[0].Role, products[0].Rows, gate.Rows = plans.RoleWhole+"q", 2*q, 2*q
		products[0].RowRanges, gate.RowRanges = []RowRange{{0, dim, 2 * dim, q}}, []RowRange{{dim, dim, 2 * dim, q}}
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

// fuse makes the products consecutive rows of one tensor.
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

// AttnOut reads Att [T, heads*headDim] and writes Y [T, hidden].
func (b *Builder) AttnOut() { b.AttnOutBias(Never) }

// AttnOutBias is AttnOut with a bias [hidden].
func (b *Builder) AttnOutBias(bias Need) {
	b.MatMul("o", BufAtt, Product{Role: "o", Tensor: "attn_output", N: b.Hidden, K: b.LayerHeads.Q * b.LayerHeads.Dim,
		Bias: bias,
		Out:  BufY})
}

// Feed describes a feed-forward block.
type Feed struct {
	In     Buf // BufX or BufH, [T, hidden]
	Act    Activation
	Fused  bool // gate and up are rows of one tensor, ffn_up, in that order
	Single bool // there is no gate
	Bias   Need
	// Shared says that the model has experts, in this layer or in others. Ranks do not divide the
	// block then.
	Shared bool
}

// FFN reads H [T, hidden] and writes Gate [T, ffn], then Y [T, hidden].
func (b *Builder) FFN(act Activation) { b.Feed(Feed{In: BufH, Act: act}) }

// Feed writes a feed-forward block as FFN does, of any kind.
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
	if f.Shared {
		return SharedRole + r
	}
	return r
}

func (f Feed) out() Buf {
	if f.Shared {
		return BufShared
	}
	return BufGate
}

// Shared reads H [T, hidden] and writes Shared [T, shared ffn], then Y [T, hidden]. A Mixture with
// Accumulate adds to Y.
func (b *Builder) Shared(act Activation) {
	n := b.Experts.Shared
	b.Gated("shared.gate_up", act, BufH,
		Product{Role: SharedRole + "gate", Tensor: "ffn_gate_shexp", N: n, K: b.Hidden, Out: BufShared},
		Product{Role: SharedRole + "up", Tensor: "ffn_up_shexp", N: n, K: b.Hidden, Out: BufShared})
	b.MatMul("shared.down", BufShared, Product{Role: SharedRole + "down", Tensor: "ffn_down_shexp", N: b.Hidden, K: n,
		Out: BufY})
}

// Mixture is a block of experts.
type Mixture struct {
	Act        Activation
	Router     Router
	Bias       Need   // of the router and the experts' matrices
	Accumulate bool   // adds to Y, which Shared wrote
	Gate       string // tensor [hidden] of a gate of the previous Y; "" for none
	Into       Buf    // output: BufH, or BufY if it is 0
}

// Mix reads H [T, hidden] and writes Router [T, experts], Expert [P, hidden], Gate [P, expert ffn],
// Expert [P, hidden], then Y [T, hidden].
func (b *Builder) Mix(m Mixture) {
	b.Route(m)
	b.ApplyExperts(m)
}

// Route reads H [T, hidden], writes Router [T, experts], and chooses the experts of each row.
func (b *Builder) Route(m Mixture) {
	e := b.Experts
	b.MatMul("router", BufH, Product{Role: "router", Tensor: "ffn_gate_inp", N: e.Count, K: b.Hidden, Bias: m.Bias,
		Out: BufRouter})
	b.Op(OpRoute, "route", Op{ExpertOp: ExpertOp{Router: m.Router}})
}

// ApplyExperts reads H [T, hidden] and applies the experts that Route has chosen.
func (b *Builder) ApplyExperts(m Mixture) {
	e := b.Experts
	gateUp := []Product{
		{Role: "gate", Tensor: "ffn_gate_exps", N: e.FFN, K: b.Hidden, Stack: e.Count, Bias: m.Bias, Out: BufGate},
		{Role: "up", Tensor: "ffn_up_exps", N: e.FFN, K: b.Hidden, Stack: e.Count, Bias: m.Bias, Out: BufGate}}
	if b.FusedExperts {
		fuse("ffn_gate_up_exps", gateUp)
	}
	b.Op(OpDispatch, "dispatch", Op{ExpertOp: ExpertOp{Router: m.Router}})
	b.Gated("experts.gate_up", m.Act, BufExpert, gateUp[0], gateUp[1])
	b.MatMul("experts.down", BufGate,
		Product{Role: "down", Tensor: "ffn_down_exps", N: b.Hidden, K: e.FFN, Stack: e.Count, Bias: m.Bias,
			Out: BufExpert})
	into := BufY
	if m.Into == BufH {
		into = BufH
	}
	o := Op{ExpertOp: ExpertOp{Router: m.Router}, Accumulate: m.Accumulate, Outs: []Buf{into}}
	if m.Gate != "" {
		o.Gate = b.Vector(m.Gate+".weight", b.Hidden, Always)
	}
	b.Op(OpCombine, "combine", o)
	if into == BufY {
		b.WroteY()
	}
}
