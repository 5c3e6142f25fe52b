package exec

import (
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/pool"
)

// SetRounded points products at rows of activations in the form of a compute path, stride bytes
// apart.
func (o *Operands) SetRounded(c microkernel.Compute, base unsafe.Pointer, stride int) {
	o.Rounded = roundedRows{c, base, stride}
}

// Work computes the caller's part of a product under the schedule's polymerization scheme. All
// active workers of the caller's group (without a Grouping all there are) call it with the same
// arguments but their own scratch, and meet at a barrier before C is read.
func (g *Gemm) Work(w *pool.Worker, next *pool.Counter, scratch unsafe.Pointer, o *Operands) {
	if g.static(w.Group().Size()) {
		p := product{gemm: g, grid: g, o: *o}
		p.runShare(scratch, w.GroupRank())
		return
	}
	total, own := g.Tasks(o.M), *o
	for lo, hi, ok := w.Next(next, total, 1); ok; lo, hi, ok = w.Next(next, total, 1) {
		for t := lo; t < hi; t++ {
			own.Then = g.first(o, t+w.N())
			g.Run(scratch, t, &own)
		}
	}
}

// static says whether the scheme lays slices on this many workers beforehand. With another number
// of active workers, they are handed out.
func (g *Gemm) static(workers int) bool {
	return g.s.WaysM > 0 && g.s.WaysM*g.s.WaysN == workers
}
