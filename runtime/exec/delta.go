package exec

import (
	"sandwich/microkernel"
	"sandwich/runtime/model"
)

const (
	deltaColumns = 2 * microkernel.StatePanel // that a worker takes of a head at a time
	deltaRows    = 256                        // of a call, which nothing preempts: some 60 microseconds
)

// delta is OpDelta: a unit is some columns of the values of a head of one sequence, whose state
// stays in the first-level cache while the rows go by. A column depends on no other, so that the
// same bits come out one row at a time, in chunks, and of any number of workers (DESIGN rule 6).
func (e *Executor) delta(g *group, i int, op *model.Op, c portion) {
	d := op.Delta
	blocks := (d.ValueDim + deltaColumns - 1) / deltaColumns
	each := d.ValueHeads * blocks
	first, units := c.share(each * (len(e.courses) - 1))
	chunk := max(1, units/(8*g.n))
	for lo, hi, ok := g.next(units, chunk); ok; lo, hi, ok = g.next(units, chunk) {
		for u := first + lo; u < first+hi; u++ {
			at, column := u/each, u%blocks*deltaColumns
			e.deltaUnit(g, i, op, e.passages[e.courses[at]:e.courses[at+1]], u%each/blocks, column)
		}
	}
}

// deltaUnit is the columns of a head from one on.
func (e *Executor) deltaUnit(g *group, i int, op *model.Op, list []passage, head, column int) {
	d := op.Delta
	const lanes = microkernel.StatePanel
	columns := min(deltaColumns, d.ValueDim-column)
	padded := (d.ValueDim + lanes - 1) / lanes * lanes
	offset := (head*padded + column) * d.KeyDim
	size := (columns + lanes - 1) / lanes * lanes * d.KeyDim
	for k := range list {
		p := &list[k]
		state := e.moveState(i, p, offset, size)
		for done := 0; done < p.n; done += deltaRows {
			row := p.row + done
			mix := g.row(model.BufMix, row)
			e.vec.DeltaRule(&microkernel.Delta{
				Dim: d.KeyDim, Columns: columns, Rows: min(deltaRows, p.n-done), Stride: g.bufs.stride[model.BufMix],
				Q:   addElems(mix, d.Key(head)*d.KeyDim),
				K:   addElems(mix, (d.KeyHeads+d.Key(head))*d.KeyDim),
				V:   addElems(mix, 2*d.KeyHeads*d.KeyDim+head*d.ValueDim+column),
				Out: addElems(g.row(model.BufAtt, row), head*d.ValueDim+column), OutStride: g.bufs.stride[model.BufAtt],
				Decay: addElems(g.row(model.BufAlpha, row), head), Beta: addElems(g.row(model.BufBeta, row), head),
				GateStride: g.bufs.stride[model.BufAlpha],
			}, state)
		}
		e.keepState(i, p, state, offset, size)
	}
}

// outGate is OpOutGate: the heads of Att, normalized where the op has a norm, times a function of
// the gate.
func (e *Executor) outGate(g *group, op *model.Op) {
	unit := units[op.Act]
	for lo, hi, ok := g.next(e.rows, rowChunk); ok; lo, hi, ok = g.next(e.rows, rowChunk) {
		for r := lo; r < hi; r++ {
			x := g.row(model.BufAtt, r)
			if w := op.Norm; w != nil {
				e.vec.RMSNormRows(x, w.N, x, w.N, op.N/w.N, &w.Data[0], w.N, e.model.Eps)
			}
			e.vec.GLU(unit, x, g.row(op.In, r), x, op.N)
		}
	}
}
