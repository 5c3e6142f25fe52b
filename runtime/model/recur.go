package model

import (
	"math"

	"sandwich/plans"
)

// Recurrent layers: their state of a sequence has a fixed size.

// Conv is a causal convolution of each of N channels over the last Width positions.
type Conv struct {
	Width, N int
	Weight   *Vector // [N][Width], the oldest position first
}

// Delta holds the sizes of a gated delta rule (Yang et al.: Gated Delta Networks, 2024). Each value
// head has a state [KeyDim, ValueDim] and reads a key head, which several value heads share.
type Delta struct {
	KeyHeads, ValueHeads, KeyDim, ValueDim int
	// Together says that the value heads of a key head are consecutive; otherwise value head h
	// reads key head h modulo their number.
	Together bool
	A, Shift *Vector // [ValueHeads]: the decay of head h is exp(A*softplus(alpha+Shift))
}

// Key returns the key head that a value head reads.
func (d *Delta) Key(head int) int {
	if d.Together {
		return head / (d.ValueHeads / d.KeyHeads)
	}
	return head % d.KeyHeads
}

// channels returns the number of channels of queries, keys and values together.
func (d *Delta) channels() int { return 2*d.KeyHeads*d.KeyDim + d.ValueHeads*d.ValueDim }

// Recurrence holds the sizes of a model's recurrent layers; all zero if it has none.
type Recurrence struct {
	Conv                                   int    // positions of the convolutions
	KeyHeads, ValueHeads, KeyDim, ValueDim int    // of the delta rule
	Every                                  int    // the last of so many layers has attention
	Layers                                 []bool // recurrent layers, instead of Every; or nil
	Joined                                 bool   // one tensor has all products, by key head
}

// Has reports whether a layer is recurrent.
func (r Recurrence) Has(layer int) bool {
	if r.Layers != nil {
		return r.Layers[layer]
	}
	return layer%r.Every < r.Every-1
}

// maxConv is the limit of positions of a convolution.
const maxConv = 64

// Delta reads the sizes of a delta rule, and which layers have it.
func (m *Metadata) Delta(c *Config) {
	r := &c.Recurrence
	r.Conv = m.Size("ssm.conv_kernel", maxConv)
	r.KeyDim = m.Size("ssm.state_size", 1<<12)
	r.KeyHeads = m.Size("ssm.group_count", 1<<12)
	r.ValueHeads = m.Size("ssm.time_step_rank", 1<<12)
	inner := m.Size("ssm.inner_size", 1<<20)
	if inner%r.ValueHeads != 0 || inner/r.ValueHeads > 1<<12 {
		m.fail("%s %d is not a multiple of its %d heads, or too large", m.key("ssm.inner_size"), inner, r.ValueHeads)
		return
	}
	r.ValueDim = inner / r.ValueHeads
	r.Every = m.SizeOr("full_attention_interval", 1<<10, 4)
	if list, ok := m.Ints("attention.recurrent_layers"); ok {
		for _, has := range list {
			r.Layers = append(r.Layers, has != 0)
		}
	}
	m.skipPredictionLayers(c)
}

// skipPredictionLayers removes the last layers, if they predict tokens after the next one; a
// forward does not need them.
func (m *Metadata) skipPredictionLayers(c *Config) {
	n := m.CountOr("nextn_predict_layers", 1<<10)
	if n >= c.Layers {
		m.fail("%s is %d of %d layers: the file is damaged", m.key("nextn_predict_layers"), n, c.Layers)
		return
	}
	c.Layers -= n
	if len(c.KVHeadsOf) > c.Layers {
		c.KVHeadsOf = c.KVHeadsOf[:c.Layers]
	}
	if len(c.FFNOf) > c.Layers {
		c.FFNOf = c.FFNOf[:c.Layers]
	}
	if r := &c.Recurrence; len(r.Layers) > c.Layers {
		r.Layers = r.Layers[:c.Layers]
	}
}

// whole returns a product that ranks do not divide.
func whole(role, tensor string, n, k int, out Buf) Product {
	return Product{Role: plans.RoleWhole + role, Tensor: tensor, N: n, K: k, Out: out}
}

// ShortConv reads H [T, hidden] and writes Mix [T, 3*hidden] of b, c and x, Att [T, hidden] = c *
// conv(b*x), then Y [T, hidden] (Liquid AI: LFM2 Technical Report, 2025, section 2).
func (b *Builder) ShortConv() {
	b.MatMul("conv.in", BufH, whole("conv_in", "shortconv.in_proj", 3*b.Hidden, b.Hidden, BufMix))
	b.op(OpConv, "conv", Op{Outs: []Buf{BufAtt}, Conv: b.conv("shortconv.conv.weight", b.Hidden)})
	b.MatMul("conv.out", BufAtt, whole("conv_out", "shortconv.out_proj", b.Hidden, b.Hidden, BufY))
}

// conv returns a convolution with the given number of channels.
func (b *Builder) conv(tensor string, channels int) *Conv {
	w := &Vector{Name: b.name(tensor), N: b.Recurrence.Conv, Stack: channels}
	return &Conv{Width: b.Recurrence.Conv, N: channels, Weight: w}
}

// deltaNet describes how files of a family store the products of a delta rule.
type deltaNet struct {
	Together bool // Delta.Together
	Paired   bool // rates and decays are rows of ssm_ba, key head by key head
}

// DeltaNet reads H [T, hidden] and writes Mix [T, channels], Z [T, value heads*ValueDim], Alpha and
// Beta [T, value heads], Att [T, value heads*ValueDim], then Y [T, hidden] (Yang et al.: Gated
// Delta Networks, 2024, figure 1).
func (b *Builder) DeltaNet(l deltaNet) {
	r := b.Recurrence
	d := &Delta{KeyHeads: r.KeyHeads, ValueHeads: r.ValueHeads, KeyDim: r.KeyDim, ValueDim: r.ValueDim,
		Together: l.Together, A: b.vector("ssm_a", r.ValueHeads, Always),
		Shift: b.vector("ssm_dt.bias", r.ValueHeads, Always)}
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
	b.op(OpConv, "delta.conv", Op{Conv: b.conv("ssm_conv1d.weight", d.channels()), Delta: d})
	b.op(OpDelta, "delta", Op{Delta: d})
	b.op(OpOutGate, "gate", Op{In: BufZ, Act: SwiGLU, N: inner, Norm: b.vector("ssm_norm.weight", r.ValueDim, Always)})
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
	b.project(projection{In: BufH, Gated: true})
	b.Rotate(Rotation{Rope: rope, QNorm: "attn_q_norm", KNorm: "attn_k_norm"})
	b.Attend(Attn{Scale: b.HeadScale()})
	b.op(OpOutGate, "gate", Op{In: BufZ, Act: SigmoidGLU, N: b.heads.Q * b.heads.Dim})
	b.AttnOut()
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

// decayA and decayShift are the means of random values of A and Shift, at which a state lasts some
// tens of positions.
const decayA, decayShift = -0.3, -2

// convStd returns the standard deviation of a convolution's weights.
func convStd(width int) float32 { return float32(1 / math.Sqrt(float64(width))) }

// state lists the vectors of a recurrent op.
func (l *lister) state(op *Op) {
	if c := op.Conv; c != nil {
		l.deferVector(op.Layer, &c.Weight, 0, convStd(c.Width))
	}
	if d := op.Delta; d != nil && op.Kind == OpDelta {
		l.deferVector(op.Layer, &d.A, decayA, -decayA/4)
		l.deferVector(op.Layer, &d.Shift, decayShift, 0.3)
	}
}
