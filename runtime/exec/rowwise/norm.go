package rowwise

import (
	"sandwich/microkernel"
	"sandwich/runtime/exec/internal/raw"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/model"
)

// Norm normalizes the rows of X.
func (o *Ops) Norm(g *tp.Group, op *model.Op) {
	for lo, hi, ok := g.Next(o.rows, rowChunk); ok; lo, hi, ok = g.Next(o.rows, rowChunk) {
		o.normRows(g, op, lo, hi)
	}
}

// normRows is a worker's chunk of a norm.
func (o *Ops) normRows(g *tp.Group, op *model.Op, lo, hi int) {
	to, hidden, n := normed(op), o.model.Dims.Hidden, hi-lo
	dst, stride := g.Row(to, lo), g.Acts.Stride[to]
	x, xStride := g.Row(model.BufX, lo), g.Acts.Stride[model.BufX]
	if !g.Private(4 * n * hidden) {
		normalize(g.Vec, dst, stride, x, xStride, n, hidden, o.model.Eps, op)
		return
	}
	own := (*float32)(g.Scratch.Private)
	tp.Offer(g.W)
	normalize(g.Vec, own, hidden, x, xStride, n, hidden, o.model.Eps, op)
	tp.Commit(g.W)
	raw.CopyRows(dst, stride, own, hidden, n, hidden)
}

// AddNorm adds Y to X and normalizes X. With several ranks it is the gather of their subgraph after
// a barrier: it sums the Y of all ranks in ascending order, as allreduce.Sum does. With firstOnly,
// only the first rank has a summand.
func (o *Ops) AddNorm(g *tp.Group, op *model.Op, firstOnly bool) {
	others := o.acts[1:]
	if firstOnly {
		others = nil
	}
	for lo, hi, ok := g.Next(o.rows, rowChunk); ok; lo, hi, ok = g.Next(o.rows, rowChunk) {
		if g.Private(4 * privateRow(o.model) * (hi - lo)) {
			o.addNormPrivate(g, op, others, lo, hi)
			continue
		}
		for i := range others {
			for r := lo; r < hi; r++ {
				g.Vec.Add(g.Row(model.BufY, r), others[i].Row(model.BufY, r), o.model.Dims.Hidden)
			}
		}
		o.AddSummed(g.Vec, op, lo, hi)
	}
}

// AddSummed adds the sum over all ranks, which is in the Y of the first one, to rows [row0, row1)
// of X, and normalizes them.
func (o *Ops) AddSummed(vec *microkernel.Vec, op *model.Op, row0, row1 int) {
	a := &o.acts[0]
	for r := row0; r < row1; r++ {
		o.addRow(vec, a.Row(model.BufX, r), a.Row(model.BufY, r), op)
		if op.Norm != nil {
			o.normRow(vec, a.Row(normed(op), r), a.Row(model.BufX, r), op)
		}
	}
}

// privateRow is the elements of a row that a private sum needs: X, Y and the result of the norm.
func privateRow(m *model.Model) int { return 3 * m.Dims.Hidden }

// PrivateBytes returns the private memory that a worker needs for norms and sums.
func PrivateBytes(m *model.Model) int { return 4 * privateRow(m) * rowChunk }

// addNormPrivate computes a chunk of a sum, including the Y of other ranks, and its norm in private
// memory.
func (o *Ops) addNormPrivate(g *tp.Group, op *model.Op, others []tp.Activations, lo, hi int) {
	hidden, n := o.model.Dims.Hidden, hi-lo
	x := (*float32)(g.Scratch.Private)
	y := raw.Add(x, n*hidden)
	out := raw.Add(y, n*hidden)
	bx, by := g.Row(model.BufX, lo), g.Row(model.BufY, lo)
	strideX, strideY := g.Acts.Stride[model.BufX], g.Acts.Stride[model.BufY]
	tp.Offer(g.W)
	raw.CopyRows(x, hidden, bx, strideX, n, hidden)
	raw.CopyRows(y, hidden, by, strideY, n, hidden)
	for r := range n {
		for i := range others {
			g.Vec.Add(raw.Add(y, r*hidden), others[i].Row(model.BufY, lo+r), hidden)
		}
		o.addRow(g.Vec, raw.Add(x, r*hidden), raw.Add(y, r*hidden), op)
		if op.Norm != nil {
			o.normRow(g.Vec, raw.Add(out, r*hidden), raw.Add(x, r*hidden), op)
		}
	}
	tp.Commit(g.W)
	raw.CopyRows(bx, strideX, x, hidden, n, hidden)
	if op.Post != nil {
		raw.CopyRows(by, strideY, y, hidden, n, hidden)
	}
	if op.Norm != nil { // after X, which it may replace
		raw.CopyRows(g.Row(normed(op), lo), g.Acts.Stride[normed(op)], out, hidden, n, hidden)
	}
}

// addRow computes X += Scale * Y. It normalizes Y first if the op has a norm for it.
func (o *Ops) addRow(vec *microkernel.Vec, x, y *float32, op *model.Op) {
	hidden := o.model.Dims.Hidden
	if op.Post != nil {
		vec.RMSNorm(y, y, &op.Post.Data[0], hidden, o.model.Eps)
	}
	if op.Scale == 1 {
		vec.Add(x, y, hidden)
	} else {
		vec.AddScaled(x, y, op.Scale, hidden)
	}
	if op.Gain != nil {
		vec.Scale(x, op.Gain.Data[0], hidden)
	}
}

// normed returns the buffer of the normalized rows of X.
func normed(op *model.Op) model.Buf {
	if op.Shift != nil {
		return model.BufX
	}
	return model.BufH
}

func (o *Ops) normRow(vec *microkernel.Vec, to, x *float32, op *model.Op) {
	hidden := o.model.Dims.Hidden
	normalize(vec, to, hidden, x, hidden, 1, hidden, o.model.Eps, op)
}

// normalize applies the norm of an op to rows of n elements.
func normalize(vec *microkernel.Vec, to *float32, toStride int, x *float32, stride, rows, n int, eps float32,
	op *model.Op) {
	if op.Shift != nil {
		vec.LayerNormRows(to, toStride, x, stride, rows, &op.Norm.Data[0], &op.Shift.Data[0], n, eps)
		return
	}
	vec.RMSNormRows(to, toStride, x, stride, rows, &op.Norm.Data[0], n, eps)
}

// RowNorm normalizes rows of a buffer, or adds them to others after it has normalized them in
// place.
func (o *Ops) RowNorm(g *tp.Group, op *model.Op) {
	for lo, hi, ok := g.Next(o.rows, rowChunk); ok; lo, hi, ok = g.Next(o.rows, rowChunk) {
		for r := lo; r < hi; r++ {
			out, in, n := g.Row(op.Outs[0], r), g.Row(op.In, r), op.Norm.N
			if !op.Accumulate {
				g.Vec.RMSNorm(out, in, &op.Norm.Data[0], n, o.model.Eps)
				continue
			}
			g.Vec.RMSNorm(in, in, &op.Norm.Data[0], n, o.model.Eps)
			g.Vec.Add(out, in, n)
		}
	}
}
