package gemm

import (
	"unsafe"

	"sandwich/runtime/pool"
)

// Work computes the caller's part of a product under the schedule's polymerization scheme. All
// active workers of the caller's group (of all workers without a Grouping) call it with the same
// arguments except their own scratch, and meet at a barrier before C is read.
func (g *Gemm) Work(w *pool.Worker, next *pool.Counter, scratch unsafe.Pointer, o *Operands) {
	if g.static(w.Group().Size()) {
		p := product{gemm: g, grid: g, o: *o}
		p.runStatic(scratch, w.GroupRank())
		return
	}
	total, own := g.Tasks(o.M), *o
	for lo, hi, ok := w.Next(next, total, 1); ok; lo, hi, ok = w.Next(next, total, 1) {
		for t := lo; t < hi; t++ {
			own.Prefetch = g.first(o, t+w.N())
			g.Run(scratch, t, &own)
		}
	}
}

// static reports whether the scheme assigns slices to this number of workers in advance. With
// another number of active workers, they are handed out.
func (g *Gemm) static(workers int) bool {
	return g.s.WaysM > 0 && g.s.WaysM*g.s.WaysN == workers
}

// runStatic computes the slices that the scheme assigns to a worker: one block of the grid.
func (p *product) runStatic(scratch unsafe.Pointer, worker int) {
	s := &p.gemm.s
	rows, cols := p.gemm.grid(p.o.M)
	i0, i1 := pool.Split(rows, s.WaysM, worker/s.WaysN, 1)
	j0, j1 := pool.Split(cols, s.WaysN, worker%s.WaysN, 1)
	for j := j0; j < j1; j++ {
		for i := i0; i < i1; i++ {
			p.o.Prefetch = nil
			if i+1 < i1 {
				p.o.Prefetch = p.gemm.first(&p.o, j*rows+i+1)
			} else if j+1 < j1 {
				p.o.Prefetch = p.gemm.first(&p.o, (j+1)*rows+i0)
			}
			p.computeChunk(scratch, p.grid.slice(p.o.M, j*rows+i))
		}
	}
}
