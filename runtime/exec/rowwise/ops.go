// Package rowwise computes the ops that work on single rows: embeddings, norms, sums of the
// residual stream, pooling and selection of rows.
package rowwise

import (
	"math"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/exec/attention"
	"sandwich/runtime/exec/gemm"
	"sandwich/runtime/exec/internal/raw"
	"sandwich/runtime/exec/load"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
)

// rowChunk is the number of rows that a worker takes at a time: few enough that a slow worker
// delays no other for long, enough that handing them out costs little.
const rowChunk = 4

// segmentLength is the length of segments of rows, so that workers share the one row of a decode
// step.
const segmentLength = 1024

// Ops computes the row-wise ops of a model.
type Ops struct {
	model  *model.Model
	tokens *load.Table
	inputs *load.Table // the layers' own inputs
	ropes  attention.Ropes

	// Of the forward in progress.
	batch     *kvcache.Batch
	rows      int
	positions []int32 // of the rows
	acts      []tp.Activations
	angles    *attention.Angles
}

// NewOps returns the ops of a model, for forwards of at most rows rows.
func NewOps(m *model.Model, w *load.Weights, ropes attention.Ropes, rows int) *Ops {
	return &Ops{model: m, tokens: &w.Tokens, inputs: &w.Inputs, ropes: ropes, positions: make([]int32, rows)}
}

// Begin prepares a batch, before the workers start. acts has the activations of all ranks.
func (o *Ops) Begin(b *kvcache.Batch, acts []tp.Activations, angles *attention.Angles) {
	o.batch, o.rows, o.acts, o.angles = b, b.Rows(), acts, angles
	for i := range b.Spans {
		s := &b.Spans[i]
		for r := range s.Rows {
			o.positions[s.Row+r] = int32(s.Pos + r)
		}
	}
}

// Embed fills X with the scaled embeddings of the batch's tokens, and the angles of their
// positions.
func (o *Ops) Embed(g *tp.Group, op *model.Op) {
	for lo, hi, ok := g.Next(o.rows, rowChunk); ok; lo, hi, ok = g.Next(o.rows, rowChunk) {
		for r := lo; r < hi; r++ {
			dst, pos := unsafe.Slice(g.Row(model.BufX, r), o.model.Dims.Hidden), int(o.positions[r])
			if err := o.tokens.Row(dst, int(o.batch.Tokens[r])); err != nil {
				panic(err) // loading has checked type and shape
			}
			scale(dst, op.Scale)
			addPositions(g.Vec, dst, op, pos)
			o.ropes.Fill(o.angles, r, pos)
		}
	}
}

// addPositions adds the embeddings of token type 0 and of a position, if the op has them.
func addPositions(vec *microkernel.Vec, dst []float32, op *model.Op, pos int) {
	if op.Types != nil {
		vec.Add(&dst[0], &op.Types.Data[0], len(dst))
	}
	if op.PosEmbed != nil {
		vec.Add(&dst[0], &op.PosEmbed.Data[pos*op.PosEmbed.N], len(dst))
	}
}

// scale multiplies a row.
func scale(x []float32, by float32) {
	if by == 1 {
		return
	}
	for i := range x {
		x[i] *= by
	}
}

// MakeInputs computes each layer's own input of a row: the mean of the projected embedding, which
// is normalized, and of the scaled table row of the token.
func (o *Ops) MakeInputs(g *tp.Group, op *model.Op) {
	all, n := op.Table.N, op.Norm.N
	own := (*float32)(g.Scratch.Work)
	for lo, hi, ok := g.Next(o.rows, rowChunk); ok; lo, hi, ok = g.Next(o.rows, rowChunk) {
		for r := lo; r < hi; r++ {
			x := g.Row(model.BufInputs, r)
			g.Vec.Scale(x, op.Scale, all)
			g.Vec.RMSNormRows(x, n, x, n, all/n, &op.Norm.Data[0], n, o.model.Eps)
			if err := o.inputs.Row(unsafe.Slice(own, all), int(o.batch.Tokens[r])); err != nil {
				panic(err) // loading has checked type and shape
			}
			g.Vec.AddScaled(x, own, float32(math.Sqrt(float64(n))), all)
			g.Vec.Scale(x, math.Sqrt2/2, all)
		}
	}
}

// ScratchBytes returns the memory that a worker needs for the row-wise ops of a model.
func ScratchBytes(m *model.Model) (largest int) {
	for i := range m.Ops {
		if t := m.Ops[i].Table; t != nil {
			largest = max(largest, 4*t.N)
		}
	}
	return largest
}

// GateInput multiplies the layer's own input by a function of the gate.
func (o *Ops) GateInput(g *tp.Group, op *model.Op) {
	for lo, hi, ok := g.Next(o.rows, rowChunk); ok; lo, hi, ok = g.Next(o.rows, rowChunk) {
		for r := lo; r < hi; r++ {
			x := g.Row(op.Outs[0], r)
			g.Vec.GLU(gemm.GLU[op.Act], x, x, raw.Add(g.Row(op.In, r), op.Layer*op.N), op.N)
		}
	}
}

// Cap limits the logits of the rows whose logits are wanted.
func (o *Ops) Cap(g *tp.Group, op *model.Op) {
	width := o.model.Width(op.In)
	segments := (width + segmentLength - 1) / segmentLength
	units := len(o.batch.LogitRows) * segments
	for lo, hi, ok := g.Next(units, rowChunk); ok; lo, hi, ok = g.Next(units, rowChunk) {
		for u := lo; u < hi; u++ {
			row, c := u/segments, u%segments*segmentLength
			g.Vec.SoftCap(raw.Add(g.Row(op.In, row), c), min(segmentLength, width-c), 1, op.Cap)
		}
	}
}

// Gather copies the scaled rows of H whose logits are wanted to the start of Y, where the head
// reads them.
func (o *Ops) Gather(g *tp.Group, op *model.Op) {
	wanted := o.batch.LogitRows
	hidden := o.model.Dims.Hidden
	for lo, hi, ok := g.Next(len(wanted), rowChunk); ok; lo, hi, ok = g.Next(len(wanted), rowChunk) {
		for i := lo; i < hi; i++ {
			dst := unsafe.Slice(g.Row(model.BufY, i), hidden)
			copy(dst, unsafe.Slice(g.Row(model.BufH, int(wanted[i])), hidden))
			scale(dst, op.Scale)
		}
	}
}
