package exec

import (
	"sandwich/microkernel"
	"sandwich/runtime/model"
)

const (
	deltaColumns = 2 * microkernel.StatePanel // of a head's values, that a call works on
	// deltaRows is the rows of a call: their queries and keys stay near while the columns of a head
	// take turns, and nothing preempts a call of so many for some 20 microseconds.
	deltaRows = 64
)

// delta is OpDelta: a unit is a head of one sequence, or some columns of its values where that
// gives a worker too few. A block of columns stays in the first-level cache while the rows go by. A
// column depends on no other, so that the same bits come out one row at a time, in chunks, and of
// any number of workers (DESIGN rule 6).
func (e *Executor) delta(g *group, i int, op *model.Op, c portion) {
	const least = 4 // units of a worker
	d, columns := op.Delta, op.Delta.ValueDim
	if d.ValueHeads*(len(e.courses)-1) < least*g.n*c.of {
		columns = min(columns, deltaColumns)
	}
	blocks := (d.ValueDim + columns - 1) / columns
	each := d.ValueHeads * blocks
	first, units := c.share(each * (len(e.courses) - 1))
	chunk := max(1, units/(8*g.n))
	for lo, hi, ok := g.next(units, chunk); ok; lo, hi, ok = g.next(units, chunk) {
		for u := first + lo; u < first+hi; u++ {
			at, column := u/each, u%blocks*columns
			h := deltaHead{op: i, d: d, head: u % each / blocks, from: column, to: min(column+columns, d.ValueDim)}
			e.deltaUnit(g, &h, e.passages[e.courses[at]:e.courses[at+1]])
		}
	}
}

// deltaHead is columns [from, to) of the values of a head.
type deltaHead struct {
	op             int
	d              *model.Delta
	head, from, to int
}

// state is where the state of a column begins in that of the op, and how long it is up to another.
func (h *deltaHead) state(from, to int) (offset, n int) {
	const lanes = microkernel.StatePanel
	padded := (h.d.ValueDim + lanes - 1) / lanes * lanes
	return (h.head*padded + from) * h.d.KeyDim, ((to+lanes-1)/lanes*lanes - from) * h.d.KeyDim
}

func (e *Executor) deltaUnit(g *group, h *deltaHead, list []passage) {
	offset, size := h.state(h.from, h.to)
	for k := range list {
		p := &list[k]
		state := e.moveState(h.op, p, offset, size)
		for done := 0; done < p.n; done += deltaRows {
			for column := h.from; column < h.to; column += deltaColumns {
				at, _ := h.state(column, column)
				e.deltaCall(g, h, p.row+done, min(deltaRows, p.n-done), column, addElems(state, at-offset))
			}
		}
		e.keepState(h.op, p, state, offset, size)
	}
}

// deltaCall runs some rows over the state of some columns.
func (e *Executor) deltaCall(g *group, h *deltaHead, row, n, column int, state *float32) {
	d, mix := h.d, g.row(model.BufMix, row)
	g.vec.DeltaRule(&microkernel.Delta{
		Dim: d.KeyDim, Columns: min(deltaColumns, h.to-column), Rows: n, Stride: g.bufs.stride[model.BufMix],
		Q:   addElems(mix, d.Key(h.head)*d.KeyDim),
		K:   addElems(mix, (d.KeyHeads+d.Key(h.head))*d.KeyDim),
		V:   addElems(mix, 2*d.KeyHeads*d.KeyDim+h.head*d.ValueDim+column),
		Out: addElems(g.row(model.BufAtt, row), h.head*d.ValueDim+column), OutStride: g.bufs.stride[model.BufAtt],
		Decay: addElems(g.row(model.BufAlpha, row), h.head), Beta: addElems(g.row(model.BufBeta, row), h.head),
		GateStride: g.bufs.stride[model.BufAlpha],
	}, state)
}

// outGate is OpOutGate: the heads of Att, normalized where the op has a norm, times a function of
// the gate.
func (e *Executor) outGate(g *group, op *model.Op) {
	unit := units[op.Act]
	for lo, hi, ok := g.next(e.rows, rowChunk); ok; lo, hi, ok = g.next(e.rows, rowChunk) {
		for r := lo; r < hi; r++ {
			x := g.row(model.BufAtt, r)
			if w := op.Norm; w != nil {
				g.vec.RMSNormRows(x, w.N, x, w.N, op.N/w.N, &w.Data[0], w.N, e.model.Eps)
			}
			g.vec.GLU(unit, x, g.row(op.In, r), x, op.N)
		}
	}
}
