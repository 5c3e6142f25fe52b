package exec

import (
	"sandwich/microkernel"
	"sandwich/runtime/kvcache"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
)

// A worker that may lose its CPU computes a chunk apart: into memory of its own, which is copied to
// where it belongs once the worker has committed it. What it reads meanwhile are numbers that
// others may already be overwriting where the chunk was taken back (they make wrong numbers that
// nobody will see), and nothing that says where to read or write.

// apartMost bounds a worker's memory for it. Chunks of more are not computed apart: the others wait
// for them.
const apartMost = 4 << 20

// apartBytes is the memory that a worker needs for chunks of the rank's ops in forwards of so many
// rows.
func (r *rank) apartBytes(rows int) int {
	m := r.shard.model
	most := 4 * normApart(m) * rowChunk
	for i := range m.Ops {
		if bytes := r.opApart(&m.Ops[i]); bytes <= apartMost {
			most = max(most, bytes)
		}
	}
	for _, g := range r.gemms {
		for i := 0; g != nil && i < len(g.rules); i++ {
			if bytes := g.rules[i].gemm.sliceBytes(m.RowsOf(model.BufExpert, rows)); bytes <= apartMost {
				most = max(most, bytes)
			}
		}
	}
	return (most + 4095) / 4096 * 4096
}

// opApart is the memory for a chunk of an op's rotations, or of what it rounds.
func (r *rank) opApart(op *model.Op) (bytes int) {
	switch {
	case op.Kind == model.OpRotate:
		return 4 * kvcache.BlockTokens * (op.Heads.Q + 2*op.Heads.KV) * op.Heads.Dim
	case len(op.W) > 0:
		s := stripsOf(r.shard.model, op)
		for c := range paths {
			bytes += s.chunk * s.bytes(microkernel.Compute(c))
		}
	}
	return bytes
}

// sliceBytes is the size of a slice of a product of so many rows.
func (g *Gemm) sliceBytes(rows int) int {
	if g.bm > 0 {
		rows = min(rows, g.bm)
	}
	return 4 * rows * g.bn
}

// offer and commit enclose what is computed apart. The race detector would find that inputs are
// read while others write them, where a chunk was taken back: under it a chunk is offered when it
// is computed and not yet committed.
func offer(w *pool.Worker) {
	if !raceEnabled {
		w.Offer()
	}
}

func commit(w *pool.Worker) {
	if raceEnabled {
		w.Offer()
	}
	w.Commit()
}

// compute is a worker's chunk of a product: a patch.
func (e *Executor) compute(g *group, p *product, whole patch) {
	s := &e.scratch[g.w.Index()]
	rows, columns := whole.m1-whole.m0, whole.n1-whole.n0
	if !g.w.Apart() || 4*rows*columns > e.apartBytes {
		p.fill(s.gemm, whole)
		return
	}
	away := *p
	offer(g.w)
	away.aside(s.gemm, s.apart, whole)
	commit(g.w)
	away.bring(s.gemm, whole)
}

// copyRows copies n elements of each of some rows.
func copyRows(to *float32, toStride int, from *float32, stride, rows, n int) {
	for r := range rows {
		copy(elems(to, r*toStride, n), elems(from, r*stride, n))
	}
}

// window is n elements of each of some rows of a buffer.
type window struct {
	at        *float32
	stride, n int
}

// row points at a row of the window.
func (v *window) row(r int) *float32 { return addElems(v.at, r*v.stride) }

// window is n elements of the rows of a buffer, from element `first` of a row on.
func (g *group) window(buf model.Buf, row, first, n int) window {
	return window{addElems(g.row(buf, row), first), g.bufs.stride[buf], n}
}

// away tells whether a chunk that works on some rows of windows in place is computed apart.
func (e *Executor) away(g *group, rows int, list []window) bool {
	elements := 0
	for i := range list {
		elements += rows * list[i].n
	}
	return g.w.Apart() && 4*elements <= e.apartBytes
}

// take copies windows to the worker's memory, and makes them those of the copies.
func (e *Executor) take(g *group, rows int, list []window) {
	own := (*float32)(e.scratch[g.w.Index()].apart)
	for i := range list {
		v := &list[i]
		copyRows(own, v.n, v.at, v.stride, rows, v.n)
		v.at, v.stride = own, v.n
		own = addElems(own, rows*v.n)
	}
}

// bring copies windows back to where they were taken.
func bring(to, from []window, rows int) {
	for i := range to {
		copyRows(to[i].at, to[i].stride, from[i].at, from[i].stride, rows, to[i].n)
	}
}

// normApart is the elements of a row that norms and sums need apart: X, Y, and what comes out.
func normApart(m *model.Model) int { return 3 * m.Dims.Hidden }

// normRows is a worker's chunk of a norm.
func (e *Executor) normRows(g *group, op *model.Op, lo, hi int) {
	to, hidden, n := normed(op), e.model.Dims.Hidden, hi-lo
	dst, stride := g.row(to, lo), g.bufs.stride[to]
	x, xStride := g.row(model.BufX, lo), g.bufs.stride[model.BufX]
	if !g.w.Apart() || e.apartBytes == 0 {
		normSome(g.vec, dst, stride, x, xStride, n, hidden, e.model.Eps, op)
		return
	}
	own := (*float32)(e.scratch[g.w.Index()].apart)
	offer(g.w)
	normSome(g.vec, own, hidden, x, xStride, n, hidden, e.model.Eps, op)
	commit(g.w)
	copyRows(dst, stride, own, hidden, n, hidden)
}

// addNormApart is a worker's chunk of a sum, of what other ranks have of Y too, and its norm; false
// where it is to be computed in place.
func (e *Executor) addNormApart(g *group, op *model.Op, others []rankBuffers, lo, hi int) bool {
	if !g.w.Apart() || e.apartBytes == 0 {
		return false
	}
	hidden, n := e.model.Dims.Hidden, hi-lo
	x := (*float32)(e.scratch[g.w.Index()].apart)
	y := addElems(x, n*hidden)
	out := addElems(y, n*hidden)
	bx, by := g.row(model.BufX, lo), g.row(model.BufY, lo)
	strideX, strideY := g.bufs.stride[model.BufX], g.bufs.stride[model.BufY]
	offer(g.w)
	copyRows(x, hidden, bx, strideX, n, hidden)
	copyRows(y, hidden, by, strideY, n, hidden)
	for r := range n {
		for i := range others {
			g.vec.Add(addElems(y, r*hidden), others[i].row(model.BufY, lo+r), hidden)
		}
		e.addRow(g.vec, addElems(x, r*hidden), addElems(y, r*hidden), op)
		if op.Norm != nil {
			e.normRow(g.vec, addElems(out, r*hidden), addElems(x, r*hidden), op)
		}
	}
	commit(g.w)
	copyRows(bx, strideX, x, hidden, n, hidden)
	if op.Post != nil {
		copyRows(by, strideY, y, hidden, n, hidden)
	}
	if op.Norm != nil { // after X, which it may take the place of
		copyRows(g.row(normed(op), lo), g.bufs.stride[normed(op)], out, hidden, n, hidden)
	}
	return true
}
