package exec

import (
	"unsafe"

	"sandwich/runtime/model"
)

// experts is Outs[i] = In * W[i]^T where W[i] is a stack of matrices, one for each expert, which
// multiplies the rows that were sent to it. The slices of all products form one list of tasks,
// expert by expert.
func (e *Executor) experts(g *group, op *model.Op, c portion) {
	total := 0
	for expert := range e.model.Experts.Count {
		total += e.expertTasks(g, op, expert)
	}
	first, total := c.share(total)
	expert, before := 0, 0 // those before this expert's; tasks ascend, but for one that was taken back
	for lo, hi, ok := g.next(total, 1); ok; lo, hi, ok = g.next(total, 1) {
		for t := first + lo; t < first+hi; t++ {
			if t < before {
				expert, before = 0, 0
			}
			for t-before >= e.expertTasks(g, op, expert) {
				before += e.expertTasks(g, op, expert)
				expert++
			}
			e.runExpert(g, op, expert, t-before)
		}
	}
}

// rowsOf are the rows of BufExpert that belong to an expert.
func (r *routes) rowsOf(expert int) (first, n int) {
	first = int(r.start[expert])
	return first, int(r.start[expert+1]) - first
}

// expertTasks is the number of slices of an expert's products.
func (e *Executor) expertTasks(g *group, op *model.Op, expert int) (total int) {
	_, m := e.bufs.routes.rowsOf(expert)
	if m == 0 {
		return 0
	}
	for _, wi := range op.W[:len(op.Outs)] {
		total += g.rank.gemms[wi].of(m).Tasks(m)
	}
	return total
}

// runExpert computes slice t of an expert's products.
func (e *Executor) runExpert(g *group, op *model.Op, expert, t int) {
	first, m := e.bufs.routes.rowsOf(expert)
	for i, wi := range op.W[:len(op.Outs)] {
		if n := g.rank.gemms[wi].of(m).Tasks(m); t >= n {
			t -= n
			continue
		}
		p := g.product(op, i, m)
		p.o.W = g.rank.weights.InStack(wi, expert)
		p.o.A = unsafe.Pointer(g.row(op.In, first))
		p.o.C = unsafe.Pointer(g.row(op.Outs[i], first))
		p.o.Rounded.base = p.o.Rounded.row(first, 0)
		p.o.Scale, p.o.Bias = g.scaleOf(wi, expert), biasOf(op, i, expert)
		if p.up != nil {
			p.upO.Scale, p.upO.Bias = g.scaleOf(op.W[1], expert), biasOf(op, 1, expert)
			p.upO.W, p.upO.A = g.rank.weights.InStack(op.W[1], expert), p.o.A
			p.upO.Rounded.base = p.upO.Rounded.row(first, 0)
		}
		e.compute(g, &p, p.grid.patch(m, t))
		return
	}
}
