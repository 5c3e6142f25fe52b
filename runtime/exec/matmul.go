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
	for i, wi := range op.W {
		g := e.gemms[wi].of(m)
		if g.static(w.N()) {
			o := e.operands(op, i, m)
			g.runShare(scratch, w.ID(), &o)
			continue
		}
		total += g.Tasks(m)
	}
	for lo, hi, ok := w.Next(&e.chunks, total, 1); ok; lo, hi, ok = w.Next(&e.chunks, total, 1) {
		for t := lo; t < hi; t++ {
			i, task := e.findTask(op, m, t, w.N())
			o := e.operands(op, i, m)
			e.gemms[op.W[i]].of(m).Run(scratch, task, &o)
		}
	}
}

// findTask says which weight of the op a task number belongs to, and which of its slices it is. Weights whose slices are laid on the workers beforehand are
// not counted.
func (e *Executor) findTask(op *model.Op, m, t, workers int) (weight, task int) {
	for i, wi := range op.W {
		g := e.gemms[wi].of(m)
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

// operands are the addresses of product i of an op.
func (e *Executor) operands(op *model.Op, i, m int) Operands {
	packed := e.weights.At(op.W[i])
	o := Operands{
		M: m, W: packed,
		A: e.bufs.base[op.In], AStride: 4 * e.bufs.stride[op.In],
		C: e.bufs.base[op.Outs[i]], CStride: 4 * e.bufs.stride[op.Outs[i]],
		Quant: e.bufs.quant,
	}
	if b := op.Bias[i]; b != nil {
		o.Bias = unsafe.Pointer(&b.Data[0])
	}
	return o
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
