package exec

import (
	"unsafe"

	"sandwich/runtime/model"
	"sandwich/runtime/pool"
)

// matMul is Outs[i] = In * W[i]^T + Bias[i]. The slices of all its weights form one list of tasks, so that small
// weights (k and v) fill the gaps of large ones.
func (e *Executor) matMul(w *pool.Worker, op *model.Op) {
	m := e.rows
	if op.In == model.BufY { // the head reads the gathered rows
		m = len(e.batch.LogitRows)
	}
	if e.readsQuantized(op) {
		e.quantize(w, op.In, m, e.model.Weights[op.W[0]].K)
		w.Barrier()
	}
	total := 0
	scratch := e.scratch[w.Index()].gemm
	for i := range op.Outs {
		g := e.gemms[op.W[i]].of(m)
		if g.static(w.N()) {
			p := e.product(op, i, m)
			p.runShare(scratch, w.ID())
			continue
		}
		total += g.Tasks(m)
	}
	for lo, hi, ok := w.Next(&e.chunks, total, 1); ok; lo, hi, ok = w.Next(&e.chunks, total, 1) {
		for t := lo; t < hi; t++ {
			i, task := e.findTask(op, m, t, w.N())
			p := e.product(op, i, m)
			p.run(scratch, task)
		}
	}
}

// findTask says which product of the op a task number belongs to, and which of its slices it is. Products whose slices are laid on the workers beforehand are
// not counted.
func (e *Executor) findTask(op *model.Op, m, t, workers int) (i, task int) {
	for i := range op.Outs {
		g := e.gemms[op.W[i]].of(m)
		if g.static(workers) {
			continue
		}
		n := g.Tasks(m)
		if t < n {
			return i, t
		}
		t -= n
	}
	panic("exec: task number beyond the op")
}

// product is product i of an op; with SwiGLU there is one of both weights.
func (e *Executor) product(op *model.Op, i, m int) product {
	p := product{gemm: e.gemms[op.W[i]].of(m), o: Operands{
		M: m, W: e.weights.At(op.W[i]),
		A: e.bufs.base[op.In], AStride: 4 * e.bufs.stride[op.In],
		C: e.bufs.base[op.Outs[i]], CStride: 4 * e.bufs.stride[op.Outs[i]],
		Bias: biasOf(op, i), Quant: e.bufs.quant,
	}}
	if op.SwiGLU {
		p.up, p.upO = e.gemms[op.W[1]].of(m), p.o
		p.upO.W, p.upO.Bias = e.weights.At(op.W[1]), biasOf(op, 1)
	}
	return p
}

// biasOf is the bias of weight i of an op, nil where it has none.
func biasOf(op *model.Op, i int) unsafe.Pointer {
	if op.Bias == nil || op.Bias[i] == nil {
		return nil
	}
	return unsafe.Pointer(&op.Bias[i].Data[0])
}

func (e *Executor) readsQuantized(op *model.Op) bool {
	for _, wi := range op.W {
		if e.weights.At(wi).quantizedInput() {
			return true
		}
	}
	return false
}

// quantize rounds the rows of a buffer to int8. A unit is a piece of a row, so that the one row of a decode step is
// shared too; blocks of 32 make pieces independent.
func (e *Executor) quantize(w *pool.Worker, in model.Buf, m, k int) {
	const piece = 1024
	pieces := (k + piece - 1) / piece
	for lo, hi, ok := w.Next(&e.quantized, m*pieces, 2); ok; lo, hi, ok = w.Next(&e.quantized, m*pieces, 2) {
		for u := lo; u < hi; u++ {
			r, c := u/pieces, u%pieces*piece
			e.vec.QuantizeRowQ8(addElems(e.bufs.row(in, r), c), min(piece, k-c), e.bufs.quant.block(r, c))
		}
	}
}
