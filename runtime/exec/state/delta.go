package state

import (
	"sandwich/microkernel"
	"sandwich/runtime/exec/internal/raw"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/model"
)

const (
	// deltaColumns is the columns of a head's values in a call.
	deltaColumns = 2 * microkernel.StatePanel
	// deltaRows is the rows of a call: their queries and keys stay cached while the columns of a
	// head are processed one after the other, and a call takes about 20 microseconds.
	deltaRows = 64
)

// Delta computes a step of a delta rule. A unit is a head of one sequence, or some columns of its
// values if that gives a worker too few units. A block of columns stays in the first-level cache
// for all rows. Columns are independent, so the results have the same bits one row at a time, in
// chunks, and with any number of workers (DESIGN rule 6).
func (o *Ops) Delta(g *tp.Group, i int, op *model.Op, c tp.Step) {
	const minimum = 4 // units of a worker
	d, columns := op.Delta, op.Delta.ValueDim
	if d.ValueHeads*o.segments.sequences() < minimum*g.N*c.Count {
		columns = min(columns, deltaColumns)
	}
	blocks := (d.ValueDim + columns - 1) / columns
	each := d.ValueHeads * blocks
	first, units := c.Share(each * o.segments.sequences())
	chunk := max(1, units/(8*g.N))
	for lo, hi, ok := g.Next(units, chunk); ok; lo, hi, ok = g.Next(units, chunk) {
		for u := first + lo; u < first+hi; u++ {
			at, column := u/each, u%blocks*columns
			h := deltaHead{op: i, d: d, head: u % each / blocks, from: column, to: min(column+columns, d.ValueDim)}
			o.deltaUnit(g, &h, o.segments.of(at))
		}
	}
}

// deltaHead is columns [from, to) of the values of a head of an op.
type deltaHead struct {
	op             int
	d              *model.Delta
	head, from, to int
}

// state returns the offset of the state of column `from` in that of the op, and its size up to
// another column.
func (h *deltaHead) state(from, to int) (offset, n int) {
	const lanes = microkernel.StatePanel
	padded := (h.d.ValueDim + lanes - 1) / lanes * lanes
	return (h.head*padded + from) * h.d.KeyDim, ((to+lanes-1)/lanes*lanes - from) * h.d.KeyDim
}

func (o *Ops) deltaUnit(g *tp.Group, h *deltaHead, list []segment) {
	offset, size := h.state(h.from, h.to)
	for k := range list {
		p := &list[k]
		state := o.states.begin(h.op, p, offset, size)
		for done := 0; done < p.n; done += deltaRows {
			for column := h.from; column < h.to; column += deltaColumns {
				at, _ := h.state(column, column)
				o.deltaCall(g, h, p.row+done, min(deltaRows, p.n-done), column, raw.Add(state, at-offset))
			}
		}
		o.states.checkpoint(h.op, p, state, offset, size)
	}
}

// deltaCall applies some rows to the state of some columns.
func (o *Ops) deltaCall(g *tp.Group, h *deltaHead, row, n, column int, state *float32) {
	d, mix := h.d, g.Row(model.BufMix, row)
	g.Vec.DeltaRule(&microkernel.Delta{
		Dim: d.KeyDim, Columns: min(deltaColumns, h.to-column), Rows: n, Stride: g.Acts.Stride[model.BufMix],
		Q:   raw.Add(mix, d.Key(h.head)*d.KeyDim),
		K:   raw.Add(mix, (d.KeyHeads+d.Key(h.head))*d.KeyDim),
		V:   raw.Add(mix, 2*d.KeyHeads*d.KeyDim+h.head*d.ValueDim+column),
		Out: raw.Add(g.Row(model.BufAtt, row), h.head*d.ValueDim+column), OutStride: g.Acts.Stride[model.BufAtt],
		Decay: raw.Add(g.Row(model.BufAlpha, row), h.head), Beta: raw.Add(g.Row(model.BufBeta, row), h.head),
		GateStride: g.Acts.Stride[model.BufAlpha],
	}, state)
}
