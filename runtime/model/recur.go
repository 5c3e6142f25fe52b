package model

import (
	"fmt"
	"math"

	"sandwich/plans"
)

// Layers with a state: what they have seen of a sequence is a few numbers of fixed size.

// Conv is a causal convolution of each of N channels over its last Width positions.
type Conv struct {
	Width, N int
	Weight   *Vector // [N][Width], the oldest position first
}

// Delta are the sizes of a gated delta rule (Yang et al.: Gated Delta Networks, 2024): each value
// head has a state [KeyDim, ValueDim], and reads a key head that others read too.
type Delta struct {
	KeyHeads, ValueHeads, KeyDim, ValueDim int
	// Together: the value heads of a key head are neighbours; otherwise value head h reads key head
	// h modulo their number.
	Together bool
	A, Shift *Vector // [ValueHeads]: the decay of head h is exp(A*softplus(alpha+Shift))
}

// Key is the key head that a value head reads.
func (d *Delta) Key(head int) int {
	if d.Together {
		return head / (d.ValueHeads / d.KeyHeads)
	}
	return head % d.KeyHeads
}

// channels are those of queries, keys and values, in this order.
func (d *Delta) channels() int { return 2*d.KeyHeads*d.KeyDim + d.ValueHeads*d.ValueDim }

// Recurrence are the sizes of a model's layers with a state; all zero where it has none.
type Recurrence struct {
	Conv                                   int // positions of the convolutions
	KeyHeads, ValueHeads, KeyDim, ValueDim int // of the delta rule
	Every                                  int // of so many layers the last attends
}

// maxConv is more than any convolution has.
const maxConv = 64

// checkDelta refuses sizes that no delta rule has.
func (r Recurrence) checkDelta() error {
	switch {
	case r.ValueHeads%r.KeyHeads != 0:
		return fmt.Errorf("%d value heads cannot share %d key heads evenly", r.ValueHeads, r.KeyHeads)
	case r.Conv < 2:
		return fmt.Errorf("a convolution of %d positions has no state: the file is damaged", r.Conv)
	}
	return nil
}

// Delta reads the sizes of a delta rule, whose keys are of one size with the state.
func (m *Metadata) Delta(c *Config) {
	r := &c.Recurrence
	r.Conv = m.Size("ssm.conv_kernel", maxConv)
	r.KeyDim = m.Size("ssm.state_size", 1<<12)
	r.KeyHeads = m.Size("ssm.group_count", 1<<12)
	r.ValueHeads = m.Size("ssm.time_step_rank", 1<<12)
	inner := m.Size("ssm.inner_size", 1<<20)
	if inner%r.ValueHeads != 0 || inner/r.ValueHeads > 1<<12 {
		m.fail("%s %d is no multiple of its %d heads, or too large", m.key("ssm.inner_size"), inner, r.ValueHeads)
		return
	}
	r.ValueDim = inner / r.ValueHeads
	r.Every = m.SizeOr("full_attention_interval", 1<<10, 4)
}

// whole is a product whose rows no rank can have alone.
func whole(role, tensor string, n, k int, out Buf) Product {
	return Product{Role: plans.RoleWhole + role, Tensor: tensor, N: n, K: k, Out: out}
}

// ShortConv reads H [T, hidden]: Mix [T, 3*hidden] of b, c and x, Att [T, hidden] = c * conv(b*x),
// then Y [T, hidden] (Liquid AI: LFM2 Technical Report, 2025, section 2).
func (b *Builder) ShortConv() {
	b.MatMul("conv.in", BufH, whole("conv_in", "shortconv.in_proj", 3*b.Hidden, b.Hidden, BufMix))
	b.op(OpConv, "conv", Op{Outs: []Buf{BufAtt}, Conv: b.conv("shortconv.conv.weight", b.Hidden)})
	b.MatMul("conv.out", BufAtt, whole("conv_out", "shortconv.out_proj", b.Hidden, b.Hidden, BufY))
}

func (b *Builder) conv(tensor string, channels int) *Conv {
	w := &Vector{Name: b.name(tensor), N: b.Recurrence.Conv, Stack: channels}
	return &Conv{Width: b.Recurrence.Conv, N: channels, Weight: w}
}

// StateOf is how many float32 a layer keeps of a sequence for an op: of a convolution the inputs of
// its last positions but one, of a delta rule the states of its heads in whole vectors of values.
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

// decays are about what random values of A and Shift are, so that a state lasts some tens of
// positions.
const decayA, decayShift = -0.3, -2

// convStd is the deviation of a convolution's taps.
func convStd(width int) float32 { return float32(1 / math.Sqrt(float64(width))) }

// state lists the vectors of a layer's state.
func (l *lister) state(op *Op) {
	if c := op.Conv; c != nil {
		l.later(op.Layer, &c.Weight, 0, convStd(c.Width))
	}
	if d := op.Delta; d != nil && op.Kind == OpDelta {
		l.later(op.Layer, &d.A, decayA, -decayA/4)
		l.later(op.Layer, &d.Shift, decayShift, 0.3)
	}
}
