package exec

import (
	"math"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
)

// convChannels is how many channels a worker takes at a time where they belong to no heads.
const convChannels = 256

// newTaps lays the weights of convolutions out as [taps][channels].
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

// channels are some of a convolution's, and what a head of them is multiplied by once its length is
// one; 0: it is left as it is.
type channels struct {
	at, n int
	scale float32
}

// channelsOf is unit u of a convolution: a head of a delta rule, or a few channels.
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
	if u < d.KeyHeads { // a query, with the scale of what is asked
		c.scale = float32(1 / math.Sqrt(float64(d.KeyDim)))
	}
	return c
}

// convUnits is how many units a convolution has for each sequence.
func convUnits(op *model.Op) int {
	if d := op.Delta; d != nil {
		return 2*d.KeyHeads + d.ValueHeads
	}
	return (op.Conv.N + convChannels - 1) / convChannels
}

// gateRows is how many rows of decays and rates a worker makes at a time.
const gateRows = 16

// conv is OpConv. Units are independent: every channel goes through the rows of a sequence by
// itself.
func (e *Executor) conv(g *group, i int, op *model.Op) {
	each := convUnits(op)
	convs := each * (len(e.courses) - 1)
	units := convs
	if op.Delta != nil {
		units += (e.rows + gateRows - 1) / gateRows
	}
	chunk := max(1, units/(4*g.n))
	for lo, hi, ok := g.next(units, chunk); ok; lo, hi, ok = g.next(units, chunk) {
		for u := lo; u < hi; u++ {
			if u >= convs {
				e.deltaGates(g, op, (u-convs)*gateRows)
				continue
			}
			at := u / each
			e.convUnit(g, i, op, e.passages[e.courses[at]:e.courses[at+1]], channelsOf(op, u%each))
		}
	}
}

// deltaGates makes the decays and rates of some rows.
func (e *Executor) deltaGates(g *group, op *model.Op, row int) {
	d := op.Delta
	for r := row; r < min(row+gateRows, e.rows); r++ {
		microkernel.DeltaGates(unsafe.Slice(g.row(model.BufAlpha, r), d.ValueHeads),
			unsafe.Slice(g.row(model.BufBeta, r), d.ValueHeads), d.A.Data, d.Shift.Data)
	}
}

// convUnit runs some channels of one sequence. The rows are computed in place, from the last one
// on, once the inputs that the state keeps are safe; the first ones read what the state had.
func (e *Executor) convUnit(g *group, i int, op *model.Op, list []passage, ch channels) {
	hist, row := op.Conv.Width-1, list[0].row
	n := list[len(list)-1].row + list[len(list)-1].n - row
	stride := g.bufs.stride[model.BufMix]
	x := addElems(g.row(model.BufMix, row), ch.at)
	c := microkernel.Conv{Taps: op.Conv.Width, TapStride: stride, W: &e.taps[i][ch.at], WStride: op.Conv.N}
	out, outStride := x, stride
	if op.Delta == nil {
		b := x
		x = addElems(x, 2*op.Conv.N)
		g.vec.MulRows(x, stride, b, stride, n, ch.n)
		c.Act, c.Gate, c.GateStride = microkernel.ConvGate, addElems(b, op.Conv.N), stride
		out, outStride = addElems(g.row(op.Outs[0], row), ch.at), g.bufs.stride[op.Outs[0]]
	}
	before := (*float32)(e.scratch[g.w.Index()].gemm) // [2*hist][ch.n]: the state, then the first rows
	e.convState(i, op, list, ch, before, x, stride)
	early := min(n, hist)
	if late := n - early; late > 0 {
		back := c
		if c.Gate != nil {
			back.Gate, back.GateStride = addElems(c.Gate, (n-1)*stride), -stride
		}
		g.vec.ConvRows(&back, addElems(out, (n-1)*outStride), -outStride, addElems(x, (late-1)*stride), -stride, late,
			ch.n)
	}
	c.TapStride = ch.n
	g.vec.ConvRows(&c, out, outStride, before, ch.n, early, ch.n)
	if ch.scale > 0 {
		g.vec.L2NormRows(x, stride, n, ch.n, ch.scale, e.model.Eps)
	}
}

// convState takes what the state has of some channels, and the first rows behind it, to `before`,
// and leaves in the states of the passages the inputs before their ends.
func (e *Executor) convState(i int, op *model.Op, list []passage, ch channels, before, x *float32, stride int) {
	hist, first := op.Conv.Width-1, list[0].row
	input := func(r int) []float32 { // r rows behind the first one; before it those of the state
		if r < 0 {
			return unsafe.Slice(addElems(before, (hist+r)*ch.n), ch.n)
		}
		return unsafe.Slice(addElems(x, r*stride), ch.n)
	}
	state := func(id kvcache.BlockID, r int) []float32 {
		return unsafe.Slice(addElems(e.states.of(i, id), r*op.Conv.N+ch.at), ch.n)
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
		copy(unsafe.Slice(addElems(before, (hist+r)*ch.n), ch.n), input(r))
	}
}

// convScratch is the bytes that a worker needs for a convolution.
func convScratch(op *model.Op) (bytes int) {
	for u := range convUnits(op) {
		bytes = max(bytes, 8*(op.Conv.Width-1)*channelsOf(op, u).n)
	}
	return bytes
}
