package gemm

import (
	"time"
	"unsafe"

	"sandwich/plans"
	"sandwich/runtime/pool"
)

// Heterogeneous computes products of one weight shape on workers of several kinds, divided as in a
// forward. `sandwich bench gemm --isa 1=avx2` measures it.
type Heterogeneous struct {
	list       []sharedProduct
	throughput *Throughput
	parts      []pool.Assignment // by worker
}

// NewHeterogeneous compiles the schedules that a phase has for a weight shape, for each kind.
// kindOf has the kind of each worker of the pool.
func NewHeterogeneous(kinds []Kind, kindOf []int, phase *plans.Phase, weight plans.WeightPlan) (*Heterogeneous,
	error) {
	u := &Heterogeneous{list: make([]sharedProduct, 1), throughput: newThroughput(1, 1, kindOf),
		parts: make([]pool.Assignment, len(kindOf))}
	for i := range kinds {
		s, err := newSchedules(&kinds[i], phase, weight.WeightKey, weight.Compute)
		if err != nil {
			return nil, err
		}
		u.list[0].kinds = append(u.list[0].kinds, s)
	}
	return u, nil
}

// ScratchBytes returns the memory that one worker needs.
func (u *Heterogeneous) ScratchBytes() (largest int) {
	for _, s := range u.list[0].kinds {
		largest = max(largest, s.scratchBytes)
	}
	return largest
}

// Tasks returns the number of chunks of a product of m rows.
func (u *Heterogeneous) Tasks(m int) int { return u.list[0].kinds[0].of(m).Tasks(m) }

// Update updates the rates by what was measured so far. Call it before the workers start.
func (u *Heterogeneous) Update() { u.throughput.Begin() }

// product returns the product for the worker's kind.
func (u *Heterogeneous) product(w *pool.Worker, o *Operands) product {
	return product{gemm: u.list[0].kinds[w.Class()].of(o.M), grid: u.list[0].kinds[0].of(o.M), o: *o}
}

// Work computes the caller's part of a product: its assignment by throughput if the rates are
// known, or chunks. All active workers call it with the same arguments except their own scratch,
// and meet at a barrier before C is read. With dynamic, the product is handed out in chunks in any
// case.
func (u *Heterogeneous) Work(w *pool.Worker, next *pool.Counter, scratch unsafe.Pointer, o *Operands, dynamic bool) {
	u.throughput.Join(w)
	p := u.product(w, o)
	own := &u.throughput.own[w.Index()]
	own.products = append(own.products[:0], p)
	if !dynamic && u.throughput.run(w, 0, u.list, o.M, w.Team(), w.ID(), u.parts, scratch) {
		return
	}
	total := p.grid.Tasks(o.M)
	for lo, hi, ok := w.Next(next, total, 1); ok; lo, hi, ok = w.Next(next, total, 1) {
		for t := lo; t < hi; t++ {
			if s := p.grid.slice(o.M, t); dynamic {
				p.computeAny(scratch, s)
			} else {
				u.throughput.timed(w, &u.list[0], &p, scratch, s)
			}
		}
	}
}

// Alone computes slices of a product for one worker's own kind, repeating from the first, until the
// function until reports true after one. It returns the number of elements of C that it computed
// and the time that it took.
func (u *Heterogeneous) Alone(w *pool.Worker, scratch unsafe.Pointer, o *Operands,
	until func(tasks, total int) bool) (elements int, took time.Duration) {
	p := u.product(w, o)
	began, total := time.Now(), p.gemm.Tasks(o.M)
	for n := 0; ; {
		s := p.gemm.slice(o.M, n%total)
		w.Lap(true)
		p.computeAny(scratch, s)
		w.Lap(false)
		elements += s.elements()
		if n++; until(n, total) {
			return elements, time.Since(began)
		}
	}
}
