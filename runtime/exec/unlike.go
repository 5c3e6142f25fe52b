package exec

import (
	"time"
	"unsafe"

	"sandwich/plans"
	"sandwich/runtime/pool"
)

// Unlike are the products of one weight shape on workers of several classes, divided as a forward
// divides them: what `sandwich bench gemm --isa 1=avx2` measures. An Executor does the same for the
// ops of a model.
type Unlike struct {
	list  []common
	pacer *pacer
	parts []pool.Stretch // by worker
}

// Unlike says that the workers are of several classes, or that some were made slow.
func (w *Workers) Unlike() bool { return w.unlike }

// NewUnlike compiles the schedules that a phase has for a weight shape, of each class.
func (w *Workers) NewUnlike(phase *plans.Phase, weight plans.WeightPlan) (*Unlike, error) {
	u := &Unlike{list: make([]common, 1), pacer: newPacer(1, 1, w.Pool.Classes()),
		parts: make([]pool.Stretch, w.Pool.Size())}
	for i := range w.classes {
		g, err := newPhaseGemm(&w.classes[i], phase, weight.WeightKey, weight.Compute)
		if err != nil {
			return nil, err
		}
		u.list[0].gemms = append(u.list[0].gemms, g)
	}
	return u, nil
}

// ScratchBytes is the memory one worker needs.
func (u *Unlike) ScratchBytes() (most int) {
	for _, g := range u.list[0].gemms {
		most = max(most, g.scratchBytes)
	}
	return most
}

// Tasks is how many chunks a product of m rows has.
func (u *Unlike) Tasks(m int) int { return u.list[0].gemms[0].of(m).Tasks(m) }

// Look takes in what was measured so far. It is called before the workers start.
func (u *Unlike) Look() { u.pacer.begin() }

// product is the product as the worker's class runs it.
func (u *Unlike) product(w *pool.Worker, o *Operands) product {
	return product{gemm: u.list[0].gemms[w.Class()].of(o.M), grid: u.list[0].gemms[0].of(o.M), o: *o}
}

// Work computes the caller's part of a product divided by throughput, as far as that is known, or
// in chunks. All active workers call it with the same arguments but their own scratch, and meet at
// a barrier before C is read. chunks hands it out in any case.
func (u *Unlike) Work(w *pool.Worker, next *pool.Counter, scratch unsafe.Pointer, o *Operands, chunks bool) {
	u.pacer.join(w)
	p := u.product(w, o)
	own := &u.pacer.own[w.Index()]
	own.products = append(own.products[:0], p)
	if !chunks && u.pacer.share(w, 0, u.list, o.M, w.Team(), w.ID(), u.parts, scratch) {
		return
	}
	total := p.grid.Tasks(o.M)
	for lo, hi, ok := w.Next(next, total, 1); ok; lo, hi, ok = w.Next(next, total, 1) {
		for t := lo; t < hi; t++ {
			if whole := p.grid.patch(o.M, t); chunks {
				p.region(scratch, whole)
			} else {
				u.pacer.timed(w, &u.list[0], &p, scratch, whole)
			}
		}
	}
}

// Alone computes slices of a product of the worker's own, one after the other and round and round,
// until `until` says so behind one: how many elements of C it computed, and how long that took.
func (u *Unlike) Alone(w *pool.Worker, scratch unsafe.Pointer, o *Operands, until func(tasks,
	total int) bool) (cells int,
	took time.Duration) {
	p := u.product(w, o)
	began, total := time.Now(), p.gemm.Tasks(o.M)
	for n := 0; ; {
		whole := p.gemm.patch(o.M, n%total)
		w.Lap(true)
		p.region(scratch, whole)
		w.Lap(false)
		cells += whole.cells()
		if n++; until(n, total) {
			return cells, time.Since(began)
		}
	}
}
