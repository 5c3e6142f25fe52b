package rowwise

import (
	"sort"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/exec/internal/raw"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
)

// Pool makes one vector of each text. A unit is a segment of the columns of one text. A mean is the
// sum of the rows in ascending order, times 1/n, so that a vector does not depend on the number of
// workers or on the rest of the batch.
func (o *Ops) Pool(g *tp.Group, op *model.Op) {
	const segment = 256
	hidden := o.model.Dims.Hidden
	segments := (hidden + segment - 1) / segment
	units := len(o.batch.LogitRows) * segments
	for lo, hi, ok := g.Next(units, 1); ok; lo, hi, ok = g.Next(units, 1) {
		for u := lo; u < hi; u++ {
			text, from := u/segments, u%segments*segment
			o.poolColumns(g, op, text, from, min(segment, hidden-from))
		}
	}
}

// poolColumns pools n columns of one text.
func (o *Ops) poolColumns(g *tp.Group, op *model.Op, text, from, n int) {
	last := int(o.batch.LogitRows[text])
	first := spanOf(o.batch.Spans, last).Row
	dst := raw.Add(g.Row(op.Outs[0], text), from)
	row := func(r int) *float32 { return raw.Add(g.Row(op.In, r), from) }
	switch op.Pool {
	case model.FirstPooling:
		last = first
	case model.LastPooling:
		first = last
	}
	copy(unsafe.Slice(dst, n), unsafe.Slice(row(first), n))
	if first == last {
		return
	}
	for r := first + 1; r <= last; r++ {
		g.Vec.Add(dst, row(r), n)
	}
	g.Vec.Scale(dst, 1/float32(last-first+1), n)
}

// spanOf returns the span of a row of the batch.
func spanOf(spans []kvcache.Span, row int) *kvcache.Span {
	return &spans[sort.Search(len(spans), func(i int) bool { return spans[i].Row > row })-1]
}

// Softmax replaces the rows whose logits are wanted by their softmax.
func (o *Ops) Softmax(g *tp.Group, op *model.Op) {
	width := o.model.Width(op.In)
	for lo, hi, ok := g.Next(len(o.batch.LogitRows), 1); ok; lo, hi, ok = g.Next(len(o.batch.LogitRows), 1) {
		for r := lo; r < hi; r++ {
			softmaxRow(g.Vec, g.Row(op.In, r), width)
		}
	}
}

func softmaxRow(v *microkernel.Vec, x *float32, n int) {
	valid, largest, sum := int32(n), float32(0), float32(0)
	v.SoftmaxBlock(x, n, 1, n, &valid, 1, &largest, &sum)
	for i := range unsafe.Slice(x, n) {
		unsafe.Slice(x, n)[i] /= sum
	}
}
