package state

import (
	"sandwich/runtime/exec/gemm"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
)

// rowChunk is the number of rows that a worker takes at a time.
const rowChunk = 4

// Ops computes the ops with recurrent states: short convolutions and delta rules.
type Ops struct {
	states *States
	taps   [][]float32 // of convolutions, by op: [taps][channels]
	eps    float32

	// Of the forward in progress.
	rows     int
	segments segments
}

// NewOps returns the ops of a model. states is nil if no layer has one.
func NewOps(m *model.Model, states *States) *Ops {
	return &Ops{states: states, taps: newTaps(m), eps: m.Eps}
}

// Begin prepares a batch, before the workers start.
func (o *Ops) Begin(rows int, spans []kvcache.Span) {
	if o.rows = rows; o.states != nil {
		o.segments.list = divide(o.segments.list, spans, o.states.store)
		o.segments.offsets = sequenceOffsets(o.segments.offsets, o.segments.list)
	}
}

// OutGate multiplies the heads of Att, normalized if the op has a norm, by a function of the gate.
func (o *Ops) OutGate(g *tp.Group, op *model.Op) {
	unit := gemm.GLU[op.Act]
	for lo, hi, ok := g.Next(o.rows, rowChunk); ok; lo, hi, ok = g.Next(o.rows, rowChunk) {
		for r := lo; r < hi; r++ {
			x := g.Row(model.BufAtt, r)
			if w := op.Norm; w != nil {
				g.Vec.RMSNormRows(x, w.N, x, w.N, op.N/w.N, &w.Data[0], w.N, o.eps)
			}
			g.Vec.GLU(unit, x, g.Row(op.In, r), x, op.N)
		}
	}
}
