package exec

import (
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/gguf"
	"sandwich/runtime/model"
)

// RowWork does what an op that has neither weights nor a task does to some rows, without the team
// and on memory that stays in the caches of one PU: a lookup, a norm, the rotation of heads with
// what is kept of them. Predictions of forwards rest on how long that takes (`sandwich bench
// roofline`). It is for one goroutine.
type RowWork struct {
	Rows int
	Run  func() error
}

// RowForm is by what RowWork computes: the instruction set's kernels, the type of the embedding and
// the form of cached keys and values, whose head dimension is that of each op.
type RowForm struct {
	Vec    *microkernel.Vec
	Table  gguf.Type
	Layout microkernel.KVLayout
}

// rotatedRows is how many rows of heads are rotated at a time: a panel of keys.
const rotatedRows = 16

// RowWorkOf is that of an op of a model, whose vectors need not be loaded; false of other kinds,
// and of an embedding that is also the head.
func RowWorkOf(m *model.Model, op *model.Op, f RowForm) (RowWork, bool) {
	switch {
	case op.Kind == model.OpEmbed && !m.Tied:
		l := newLookup(m, f.Table)
		return RowWork{lookupTokens, func() error { return l.rows(lookupTokens) }}, true
	case (op.Kind == model.OpNorm || op.Kind == model.OpAddNorm) && op.Norm != nil:
		return normWork(m, op, f), true
	case op.Kind == model.OpRotate:
		return rotateWork(m, op, f)
	}
	return RowWork{}, false
}

func (l *lookup) rows(n int) error {
	for i := range n {
		if err := l.one(i, i); err != nil {
			return err
		}
	}
	return nil
}

// some are n numbers that no op makes extreme.
func some(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = 1 - 0.5*float32(i%3)
	}
	return x
}

// normWork is a worker's chunk of a norm.
func normWork(m *model.Model, op *model.Op, f RowForm) RowWork {
	hidden, own := m.Dims.Hidden, *op
	x, to := some(rowChunk*hidden), make([]float32, rowChunk*hidden)
	own.Norm = &model.Vector{Data: some(hidden)}
	if op.Shift != nil {
		own.Shift = &model.Vector{Data: some(hidden)}
	}
	return RowWork{rowChunk, func() error {
		normSome(f.Vec, &to[0], hidden, &x[0], hidden, rowChunk, hidden, m.Eps, &own)
		return nil
	}}
}

// rotateWork is all heads of a run, as rotateRun treats them; false where a cache of that form
// cannot be.
func rotateWork(m *model.Model, op *model.Op, f RowForm) (RowWork, bool) {
	h, l := op.Heads, f.Layout
	l.HeadDim = h.Dim
	if h.Q < 1 || l.Check() != nil {
		return RowWork{}, false
	}
	heads := h.Q
	kept := 0
	if op.Keeper == op.Layer {
		kept, heads = h.KV, h.Q+h.KV
	}
	q, v, ones := some(rotatedRows*heads*h.Dim), some(rotatedRows*max(1, kept)*h.Dim), some(h.Dim)
	block := make([]uint64, (l.KBytes()+l.VBytes()+7)/8)
	k := unsafe.Pointer(&block[0])
	turned := 0
	if op.Rope != nil {
		turned = op.Rope.Dim
	}
	angles := make([]float32, max(1, turned))
	for i := range turned / 2 { // turned by nothing, so that numbers stay what they are
		angles[i] = 1
	}
	normed := func(x []float32, norm *model.Vector, n int) {
		if norm != nil && n > 0 {
			f.Vec.RMSNormRows(&x[0], h.Dim, &x[0], h.Dim, n, &ones[0], h.Dim, m.Eps)
		}
	}
	return RowWork{rotatedRows, func() error {
		for r := range rotatedRows {
			row := q[r*heads*h.Dim:][:heads*h.Dim]
			normed(row, op.QNorm, h.Q)
			if op.Temper != nil {
				f.Vec.Scale(&row[0], 1, h.Q*h.Dim)
			}
			normed(row[h.Q*h.Dim:], op.KNorm, kept)
			normed(v[r*kept*h.Dim:], op.VNorm, kept)
			if turned > 0 {
				f.Vec.RoPE(&row[0], turned, heads, h.Dim, &angles[0], op.Rope.Neox)
			}
		}
		for i := range kept {
			f.Vec.StoreK(l, k, 0, &q[(h.Q+i)*h.Dim], rotatedRows, heads*h.Dim)
			f.Vec.StoreV(l, unsafe.Add(k, l.KBytes()), 0, &v[i*h.Dim], rotatedRows, kept*h.Dim)
		}
		return nil
	}}, true
}
