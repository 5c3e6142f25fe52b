package exec

import (
	"unsafe"

	"sandwich/runtime/model"
	"sandwich/runtime/pool"
)

// experts is Outs[i] = In * W[i]^T where W[i] is a stack of matrices, one for each expert, which multiplies the rows that
// were sent to it. The slices of all products form one list of tasks, expert by expert.
func (e *Executor) experts(w *pool.Worker, op *model.Op) {
	if e.readsQuantized(op) {
		e.quantize(w, op.In, e.rows*e.bufs.routes.used, e.model.Weights[op.W[0]].K)
		w.Barrier()
	}
	total := 0
	for expert := range e.model.Experts.Count {
		total += e.expertTasks(op, expert)
	}
	scratch := e.scratch[w.Index()].gemm
	expert, before := 0, 0 // tasks come in ascending order: those before this expert's
	for lo, hi, ok := w.Next(&e.chunks, total, 1); ok; lo, hi, ok = w.Next(&e.chunks, total, 1) {
		for t := lo; t < hi; t++ {
			for t-before >= e.expertTasks(op, expert) {
				before += e.expertTasks(op, expert)
				expert++
			}
			e.runExpert(scratch, op, expert, t-before)
		}
	}
}

// rowsOf are the rows of BufExpert that belong to an expert.
func (r *routes) rowsOf(expert int) (first, n int) {
	first = int(r.start[expert])
	return first, int(r.start[expert+1]) - first
}

// expertTasks is the number of slices of an expert's products.
func (e *Executor) expertTasks(op *model.Op, expert int) (total int) {
	_, m := e.bufs.routes.rowsOf(expert)
	if m == 0 {
		return 0
	}
	for _, wi := range op.W[:len(op.Outs)] {
		total += e.gemms[wi].of(m).Tasks(m)
	}
	return total
}

// runExpert computes slice t of an expert's products.
func (e *Executor) runExpert(scratch unsafe.Pointer, op *model.Op, expert, t int) {
	first, m := e.bufs.routes.rowsOf(expert)
	for i, wi := range op.W[:len(op.Outs)] {
		g := e.gemms[wi].of(m)
		if n := g.Tasks(m); t >= n {
			t -= n
			continue
		}
		p := e.product(op, i, m)
		p.o.W = e.weights.InStack(wi, expert)
		p.o.A = unsafe.Pointer(e.bufs.row(op.In, first))
		p.o.C = unsafe.Pointer(e.bufs.row(op.Outs[i], first))
		p.o.Quant.base = e.bufs.quant.block(first, 0)
		if p.up != nil {
			p.upO.W, p.upO.A, p.upO.Quant = e.weights.InStack(op.W[1], expert), p.o.A, p.o.Quant
		}
		p.run(scratch, t)
		return
	}
}
