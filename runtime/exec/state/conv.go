package state

import (
	"math"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/exec/internal/raw"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
)

// convChannels is the number of channels of a unit if they belong to no heads.
const convChannels = 256

// newTaps arranges the weights of convolutions as [taps][channels].
func newTaps(m *model.Model) [][]float32 {
	out := make([][]float32, len(m.Ops))
	for i := range m.Ops {
		c := m.Ops[i].Conv
		if c == nil || c.Weight.Data == nil {
			continue
		}
		out[i] = make([]float32, len(c.Weight.Data))
		for ch := range c.N {
			for t := range c.Width {
				out[i][t*c.N+ch] = c.Weight.Data[ch*c.Width+t]
			}
		}
	}
	return out
}

// channels are some channels of a convolution, and the factor of a head after it is normalized to
// length 1; 0: it is not normalized.
type channels struct {
	at, n int
	scale float32
}

// channelsOf returns unit u of a convolution: a head of a delta rule, or convChannels.
func channelsOf(op *model.Op, u int) channels {
	d := op.Delta
	if d == nil {
		return channels{at: u * convChannels, n: min(convChannels, op.Conv.N-u*convChannels)}
	}
	keys := 2 * d.KeyHeads
	if u >= keys {
		return channels{at: keys*d.KeyDim + (u-keys)*d.ValueDim, n: d.ValueDim}
	}
	c := channels{at: u * d.KeyDim, n: d.KeyDim, scale: 1}
	if u < d.KeyHeads { // a query, with the scale of attention
		c.scale = float32(1 / math.Sqrt(float64(d.KeyDim)))
	}
	return c
}

// convUnits returns the number of units of a convolution for each sequence.
func convUnits(op *model.Op) int {
	if d := op.Delta; d != nil {
		return 2*d.KeyHeads + d.ValueHeads
	}
	return (op.Conv.N + convChannels - 1) / convChannels
}

// gateRows is the number of rows of decays and rates of a unit.
const gateRows = 16

// Conv computes a short convolution. Units are independent: each channel depends only on itself.
func (o *Ops) Conv(g *tp.Group, i int, op *model.Op) {
	each := convUnits(op)
	convs := each * o.segments.sequences()
	units := convs
	if op.Delta != nil {
		units += (o.rows + gateRows - 1) / gateRows
	}
	chunk := max(1, units/(4*g.N))
	for lo, hi, ok := g.Next(units, chunk); ok; lo, hi, ok = g.Next(units, chunk) {
		for u := lo; u < hi; u++ {
			if u >= convs {
				o.deltaGates(g, op, (u-convs)*gateRows)
				continue
			}
			at := u / each
			o.convUnit(g, i, op, o.segments.of(at), channelsOf(op, u%each))
		}
	}
}

// deltaGates computes the decays and rates of some rows.
func (o *Ops) deltaGates(g *tp.Group, op *model.Op, row int) {
	d := op.Delta
	for r := row; r < min(row+gateRows, o.rows); r++ {
		microkernel.DeltaGates(unsafe.Slice(g.Row(model.BufAlpha, r), d.ValueHeads),
			unsafe.Slice(g.Row(model.BufBeta, r), d.ValueHeads), d.A.Data, d.Shift.Data)
	}
}

// convUnit computes some channels of one sequence. Rows are computed in place from the last one to
// the first, after the inputs that the state keeps have been copied. The first rows read the old
// state.
func (o *Ops) convUnit(g *tp.Group, i int, op *model.Op, list []segment, ch channels) {
	hist, row := op.Conv.Width-1, list[0].row
	n := list[len(list)-1].row + list[len(list)-1].n - row
	stride := g.Acts.Stride[model.BufMix]
	x := raw.Add(g.Row(model.BufMix, row), ch.at)
	c := microkernel.Conv{Taps: op.Conv.Width, TapStride: stride, W: &o.taps[i][ch.at], WStride: op.Conv.N}
	out, outStride := x, stride
	if op.Delta == nil {
		b := x
		x = raw.Add(x, 2*op.Conv.N)
		g.Vec.MulRows(x, stride, b, stride, n, ch.n)
		c.Act, c.Gate, c.GateStride = microkernel.ConvGate, raw.Add(b, op.Conv.N), stride
		out, outStride = raw.Add(g.Row(op.Outs[0], row), ch.at), g.Acts.Stride[op.Outs[0]]
	}
	before := (*float32)(g.Scratch.Work) // [2*hist][ch.n]: the state, then the first rows
	o.convState(i, op, list, ch, before, x, stride)
	early := min(n, hist)
	if late := n - early; late > 0 {
		back := c
		if c.Gate != nil {
			back.Gate, back.GateStride = raw.Add(c.Gate, (n-1)*stride), -stride
		}
		g.Vec.ConvRows(&back, raw.Add(out, (n-1)*outStride), -outStride, raw.Add(x, (late-1)*stride), -stride, late,
			ch.n)
	}
	c.TapStride = ch.n
	g.Vec.ConvRows(&c, out, outStride, before, ch.n, early, ch.n)
	if ch.scale > 0 {
		g.Vec.L2NormRows(x, stride, n, ch.n, ch.scale, o.eps)
	}
}

// convState copies the state of some channels and the first rows after it to `before`, and stores
// the last inputs of each segment in its states.
func (o *Ops) convState(i int, op *model.Op, list []segment, ch channels, before, x *float32, stride int) {
	hist, first := op.Conv.Width-1, list[0].row
	input := func(r int) []float32 { // r rows after the first one; negative: of the state
		if r < 0 {
			return unsafe.Slice(raw.Add(before, (hist+r)*ch.n), ch.n)
		}
		return unsafe.Slice(raw.Add(x, r*stride), ch.n)
	}
	state := func(id kvcache.BlockID, r int) []float32 {
		return unsafe.Slice(raw.Add(o.states.of(i, id), r*op.Conv.N+ch.at), ch.n)
	}
	for r := range hist {
		if from := list[0].from; from == kvcache.NoState {
			clear(input(r - hist))
		} else {
			copy(input(r-hist), state(from, r))
		}
	}
	for k := range list {
		p := &list[k]
		for r := range hist {
			last := input(p.row + p.n - first - hist + r)
			if p.keep != kvcache.NoState {
				copy(state(p.keep, r), last)
			}
			if !p.more {
				copy(state(p.to, r), last)
			}
		}
	}
	end := list[len(list)-1]
	for r := range min(hist, end.row+end.n-first) {
		copy(unsafe.Slice(raw.Add(before, (hist+r)*ch.n), ch.n), input(r))
	}
}

// ScratchBytes returns the memory that a worker needs for the convolutions of a model.
func ScratchBytes(m *model.Model) (bytes int) {
	for i := range m.Ops {
		op := &m.Ops[i]
		for u := 0; op.Kind == model.OpConv && u < convUnits(op); u++ {
			bytes = max(bytes, 8*(op.Conv.Width-1)*channelsOf(op, u).n)
		}
	}
	return bytes
}
