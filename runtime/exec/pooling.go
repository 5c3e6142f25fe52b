package exec

import (
	"sort"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
)

// pool is OpPool. A unit is a piece of the columns of one text, and a mean is the sum of its rows
// in ascending order, times 1/n: a vector does not depend on threads, nor on what else is in the
// batch.
func (e *Executor) pool(g *group, op *model.Op) {
	const piece = 256
	hidden := e.model.Dims.Hidden
	pieces := (hidden + piece - 1) / piece
	for lo, hi, ok := g.next(len(e.batch.LogitRows)*pieces, 1); ok; lo, hi, ok = g.next(len(e.batch.LogitRows)*pieces,
		1) {
		for u := lo; u < hi; u++ {
			text, from := u/pieces, u%pieces*piece
			e.poolColumns(g, op, text, from, min(piece, hidden-from))
		}
	}
}

// poolColumns is n columns of one text.
func (e *Executor) poolColumns(g *group, op *model.Op, text, from, n int) {
	last := int(e.batch.LogitRows[text])
	first := spanOf(e.batch.Spans, last).Row
	dst := addElems(g.row(op.Outs[0], text), from)
	row := func(r int) *float32 { return addElems(g.row(op.In, r), from) }
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
		g.vec.Add(dst, row(r), n)
	}
	g.vec.Scale(dst, 1/float32(last-first+1), n)
}

// spanOf is the span that a row of the batch is of.
func spanOf(spans []kvcache.Span, row int) *kvcache.Span {
	return &spans[sort.Search(len(spans), func(i int) bool { return spans[i].Row > row })-1]
}

// softmax is OpSoftmax.
func (e *Executor) softmax(g *group, op *model.Op) {
	width := e.model.Width(op.In)
	for lo, hi, ok := g.next(len(e.batch.LogitRows), 1); ok; lo, hi, ok = g.next(len(e.batch.LogitRows), 1) {
		for r := lo; r < hi; r++ {
			softmaxRow(g.vec, g.row(op.In, r), width)
		}
	}
}

func softmaxRow(v *microkernel.Vec, x *float32, n int) {
	valid, most, sum := int32(n), float32(0), float32(0)
	v.SoftmaxBlock(x, n, 1, n, &valid, 1, &most, &sum)
	for i := range unsafe.Slice(x, n) {
		unsafe.Slice(x, n)[i] /= sum
	}
}
