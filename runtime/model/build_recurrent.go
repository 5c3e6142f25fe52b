package model

import "sandwich/plans"

// whole returns a product that ranks do not divide.
func whole(role, tensor string, n, k int, out Buf) Product {
	return Product{Role: plans.RoleWhole + role, Tensor: tensor, N: n, K: k, Out: out}
}

// ShortConv reads H [T, hidden] and writes Mix [T, 3*hidden] of b, c and x, Att [T, hidden] = c *
// conv(b*x), then Y [T, hidden] (Liquid AI: LFM2 Technical Report, 2025, section 2).
func (b *Builder) ShortConv() {
	b.MatMul("conv.in", BufH, whole("conv_in", "shortconv.in_proj", 3*b.Hidden, b.Hidden, BufMix))
	b.Op(OpConv, "conv", Op{Outs: []Buf{BufAtt},
		RecurrentOp: RecurrentOp{Conv: b.conv("shortconv.conv.weight", b.Hidden)}})
	b.MatMul("conv.out", BufAtt, whole("conv_out", "shortconv.out_proj", b.Hidden, b.Hidden, BufY))
}

// conv returns a convolution with the given number of channels.
func (b *Builder) conv(tensor string, channels int) *Conv {
	w := &Vector{Name: b.name(tensor), N: b.Recurrence.Conv, Stack: channels}
	return &Conv{Width: b.Recurrence.Conv, N: channels, Weight: w}
}

// DeltaLayout describes how files of a family store the products of a delta rule.
type DeltaLayout struct {
	Together bool // Delta.Together
	Paired   bool // rates and decays are rows of ssm_ba, key head by key head
}

// DeltaNet reads H [T, hidden] and writes Mix [T, channels], Z [T, value heads*ValueDim], Alpha and
// Beta [T, value heads], Att [T, value heads*ValueDim], then Y [T, hidden] (Yang et al.: Gated
// Delta Networks, 2024, figure 1).
func (b *Builder) DeltaNet(l DeltaLayout) {
	r := b.Recurrence
	d := &Delta{KeyHeads: r.KeyHeads, ValueHeads: r.ValueHeads, KeyDim: r.KeyDim, ValueDim: r.ValueDim,
		Together: l.Together, A: b.Vector("ssm_a", r.ValueHeads, Always),
		Shift: b.Vector("ssm_dt.bias", r.ValueHeads, Always)}
	inner, heads := r.ValueHeads*r.ValueDim, r.ValueHeads
	qkv := whole("qkv", "attn_qkv", d.channels(), b.Hidden, BufMix)
	z := whole("z", "attn_gate", inner, b.Hidden, BufZ)
	if r.Joined {
		join(d, &qkv, &z)
	}
	beta := whole("beta", "ssm_beta", heads, b.Hidden, BufBeta)
	alpha := whole("alpha", "ssm_alpha", heads, b.Hidden, BufAlpha)
	if l.Paired {
		each := r.ValueHeads / r.KeyHeads
		beta.Tensor, alpha.Tensor, beta.Rows, alpha.Rows = "ssm_ba", "ssm_ba", 2*heads, 2*heads
		beta.RowRanges = []RowRange{{0, each, 2 * each, heads}}
		alpha.RowRanges = []RowRange{{each, each, 2 * each, heads}}
	}
	b.MatMul("delta.in", BufH, qkv, z, beta, alpha)
	b.Op(OpConv, "delta.conv", Op{RecurrentOp: RecurrentOp{b.conv("ssm_conv1d.weight", d.channels()), d}})
	b.Op(OpDelta, "delta", Op{RecurrentOp: RecurrentOp{Delta: d}})
	b.Op(OpOutGate, "gate", Op{In: BufZ, Act: SwiGLU, N: inner, Norm: b.Vector("ssm_norm.weight", r.ValueDim, Always)})
	b.MatMul("delta.out", BufAtt, whole("out", "ssm_out", b.Hidden, inner, BufY))
}

// join makes queries, keys, values and gates rows of one tensor, which is ordered by key head.
func join(d *Delta, qkv, z *Product) {
	each := d.ValueHeads / d.KeyHeads * d.ValueDim // values of a key head
	step, keys := 2*(d.KeyDim+each), d.KeyHeads*d.KeyDim
	qkv.Tensor, z.Tensor, qkv.Rows, z.Rows = "ssm_in", "ssm_in", qkv.N+z.N, qkv.N+z.N
	qkv.RowRanges = []RowRange{{0, d.KeyDim, step, keys}, {d.KeyDim, d.KeyDim, step, keys},
		{2 * d.KeyDim, each, step, z.N}}
	z.RowRanges = []RowRange{{2*d.KeyDim + each, each, step, z.N}}
}

// GatedAttention writes attention whose output is multiplied by the sigmoid of gates that are
// projected with the queries (Qwen Team: Qwen3-Next, 2025): Q and Z [T, heads*headDim], K and V [T,
// kvHeads*headDim], Att [T, heads*headDim], then Y [T, hidden].
func (b *Builder) GatedAttention(rope *Rope) {
	b.Project(Projection{In: BufH, Gated: true})
	b.Rotate(Rotation{Rope: rope, QNorm: "attn_q_norm", KNorm: "attn_k_norm"})
	b.Attend(Attn{Scale: b.HeadScale()})
	b.Op(OpOutGate, "gate", Op{In: BufZ, Act: SigmoidGLU, N: b.LayerHeads.Q * b.LayerHeads.Dim})
	b.AttnOut()
}
