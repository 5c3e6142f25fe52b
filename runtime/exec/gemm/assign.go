package gemm

import (
	"time"
	"unsafe"

	"sandwich/internal/num"
	"sandwich/microkernel"
	"sandwich/roofline"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
)

// The products of an op are divided among heterogeneous workers along the larger of their output
// dimensions, never along k, in the ratio of measured throughput (SMEPilot section 4.1). An element
// of C is one chain over k on every worker (DESIGN rule 6), so no division changes a bit.

// sharedProduct is a product that heterogeneous workers compute together.
type sharedProduct struct {
	kinds []*schedules // by worker kind
	gated bool         // a gate and an up projection
}

// assignment is a worker's part of an op: columns of its products side by side, those of each
// product rounded up to panels, or rows of all of them. It is valid for a number of rows, a team
// and a version of the rates.
type assignment struct {
	m       int
	version uint64
	team    *int // address of the list of members, which never changes
	dynamic bool // the op is handed out in chunks instead: a rate is unknown, or an assignment ends no sooner
	byRows  bool
	lo, hi  int
}

// assign returns the part of op number op, of m rows, that number id of some workers has. All of
// them compute the same division. It allocates nothing.
func (p *Throughput) assign(w *pool.Worker, op int, list []sharedProduct, m int, members []int, id int) *assignment {
	own := &p.own[w.Index()]
	s := &own.assignments[op]
	if s.m == m && s.version == own.view.version && s.team == &members[0] {
		return s
	}
	*s = assignment{m: m, version: own.view.version, team: &members[0], byRows: byRows(list, m)}
	if s.dynamic = !p.divide(w, list, m, members) || p.prefersChunks(own, list, m, s.byRows); !s.dynamic {
		s.lo, s.hi = own.part(id)
	}
	return s
}

// prefersChunks reports whether handing out chunks ends as early as the last division. A division
// ends later than its rates say: by their relative error, and if the times of single chunks vary a
// lot, by more than helping at the end recovers.
func (p *Throughput) prefersChunks(own *workerView, list []sharedProduct, m int, byRows bool) bool {
	off := hysteresis
	for i := range list {
		meter := meterOf(list[i].kinds[0].meter, m, list[i].gated)
		off = max(off, 2*own.view.spread[meter]-unsteady)
	}
	return roofline.EndInChunks(extent(list, m, byRows), chunksOf(list, m), own.sides) <=
		(1+off)*roofline.End(own.sides, own.parts)
}

// chunksOf returns the number of chunks of an op's products: slices of the main kind.
func chunksOf(list []sharedProduct, m int) (n int) {
	for i := range list {
		n += list[i].kinds[0].of(m).Tasks(m)
	}
	return n
}

// byRows reports whether products of m rows are taller than wide, side by side.
func byRows(list []sharedProduct, m int) bool { return m > extent(list, m, false) }

// extent returns the size of the dimension that is divided.
func extent(list []sharedProduct, m int, byRows bool) (n int) {
	if byRows {
		return m
	}
	for i := range list {
		n += panelColumns(list[i].kinds[0].of(m))
	}
	return n
}

// divide computes the division of an op in the worker's own memory. It reports false if a rate is
// unknown.
func (p *Throughput) divide(w *pool.Worker, list []sharedProduct, m int, members []int) bool {
	own, rows := &p.own[w.Index()], byRows(list, m)
	own.sides, own.parts = own.sides[:len(members)], own.parts[:len(members)]
	for j, index := range members {
		var known bool
		if own.sides[j], known = p.side(own.view, list, m, index, rows); !known {
			return false
		}
	}
	roofline.Split(extent(list, m, rows), own.sides, own.parts)
	return true
}

// part returns the range of a member in the last division.
func (own *workerView) part(id int) (lo, hi int) {
	for j := range id {
		lo += own.parts[j]
	}
	return lo, lo + own.parts[id]
}

// side returns the rate and the granularity of a worker in a division; known is false if a rate is
// unknown.
func (p *Throughput) side(v *rateView, list []sharedProduct, m, index int, byRows bool) (side roofline.Side,
	known bool) {
	seconds, columns := 0.0, 0
	side.Tile = 1
	for i := range list {
		s := list[i].kinds[p.kindOf[index]]
		gemm, meter := s.of(m), meterOf(s.meter, m, list[i].gated)
		rate := v.rate[meter*p.workers+index]
		if rate == 0 {
			return side, false
		}
		columns += panelColumns(gemm)
		seconds += float64(panelColumns(gemm)) / rate
		switch k := &gemm.s.Kernel; {
		case !byRows:
			side.Tile = max(side.Tile, k.NR)
		case k.MatrixUnit():
			side.Tile = max(side.Tile, k.MR)
		default: // rows are spread over register tiles of about equal height, wherever they are cut
			side.Least = max(side.Least, k.MR)
		}
	}
	side.Rate = float64(columns) / seconds
	return side, true
}

// panelColumns returns the columns of a product, rounded up to panels.
func panelColumns(g *Gemm) int { return num.RoundUp(g.layout.N, microkernel.PanelWidth) }

// of returns the assigned part of a product of n columns that begin at number `from` of all
// columns.
func (s *assignment) of(from, n int) slice {
	if s.byRows {
		return slice{s.lo, s.hi, 0, n}
	}
	return slice{0, s.m, max(0, s.lo-from), min(n, s.hi-from)}
}

// timed computes a slice of any size and records its time.
func (p *Throughput) timed(w *pool.Worker, c *sharedProduct, r *product, scratch unsafe.Pointer, s slice) {
	began := time.Now()
	w.Lap(true)
	r.computeAny(scratch, s)
	w.Lap(false)
	p.add(w, meterOf(c.kinds[0].meter, r.o.M, c.gated), s.elements(), began)
}

// run computes the worker's assignment of an op, whose products are in its own memory, and then
// helps workers that are late. It reports false if there is no assignment and the op is handed out.
func (p *Throughput) run(w *pool.Worker, op int, list []sharedProduct, m int, members []int, id int,
	parts []pool.Assignment, scratch unsafe.Pointer) bool {
	s := p.assign(w, op, list, m, members, id)
	if s.dynamic {
		return false
	}
	kind := w.Class()
	total := s.chunks(list, kind)
	for i, ok := w.Front(&parts[id], total); ok; i, ok = w.Front(&parts[id], total) {
		p.chunk(w, s, list, kind, i, scratch)
	}
	if len(members) > 1 {
		p.help(w, list, s, members, id, parts, scratch)
	}
	return true
}

// help takes chunks from the end of unfinished assignments, of the latest first, as long as their
// workers would need longer than this one: a rate was wrong, or a worker lost its CPU.
func (p *Throughput) help(w *pool.Worker, list []sharedProduct, s *assignment, members []int, id int,
	parts []pool.Assignment, scratch unsafe.Pointer) {
	own := &p.own[w.Index()]
	if !p.divide(w, list, s.m, members) {
		return
	}
	for {
		of, late := -1, own.sides[id].Rate
		theirs := *s
		for j, index := range members {
			if j == id || own.parts[j] == 0 {
				continue
			}
			other := *s
			other.lo, other.hi = own.part(j)
			left := w.Left(&parts[j], other.chunks(list, p.kindOf[index]))
			// On average half of the chunk at work is left.
			if need := own.sides[id].Rate * own.sides[id].Rate / own.sides[j].Rate * (float64(left) + 0.5); left > 0 &&
				need > late {
				of, late, theirs = j, need, other
			}
		}
		if of < 0 {
			return
		}
		kind := p.kindOf[members[of]]
		if i, ok := w.Back(&parts[of], theirs.chunks(list, kind)); ok {
			p.chunk(w, &theirs, list, kind, i, scratch)
		}
	}
}

// chunks returns the number of chunks of an assignment: slices of the kind whose worker has it, or
// several slices each if there are very many.
func (s *assignment) chunks(list []sharedProduct, kind int) int {
	n := s.slices(list, kind)
	return num.CeilDiv(n, slicesOfChunk(n))
}

// slicesOfChunk returns the number of slices of a chunk of an assignment of n slices: as few as
// give at most pool.MaxAssigned chunks.
func slicesOfChunk(n int) int { return max(1, num.CeilDiv(n, pool.MaxAssigned)) }

// slices returns the number of slices of an assignment.
func (s *assignment) slices(list []sharedProduct, kind int) (n int) {
	from := 0
	for j := range list {
		g := list[j].kinds[kind].of(s.m)
		n += g.subslices(s.of(from, g.layout.N))
		from += panelColumns(g)
	}
	return n
}

// chunk computes chunk i of an assignment of a worker of some kind.
func (p *Throughput) chunk(w *pool.Worker, s *assignment, list []sharedProduct, kind, i int, scratch unsafe.Pointer) {
	n := s.slices(list, kind)
	each := slicesOfChunk(n)
	for at := i * each; at < min((i+1)*each, n); at++ {
		left, from := at, 0
		for j := range list {
			g := list[j].kinds[kind].of(s.m)
			part := s.of(from, g.layout.N)
			if n := g.subslices(part); left >= n {
				left, from = left-n, from+panelColumns(g)
				continue
			}
			r := &p.own[w.Index()].products[j]
			r.o.Prefetch = nil
			if left+1 < g.subslices(part) {
				r.o.Prefetch = g.weights(&r.o, g.subslice(part, left+1).n0, 0)
			}
			p.timed(w, &list[j], r, scratch, g.subslice(part, left))
			break
		}
	}
}

// assigned is MatMul of heterogeneous workers.
func (r *Products) assigned(g *tp.Group, i int, op *model.Op, m int, adds bool) {
	list, own := r.shared[i], &r.throughput.own[g.W.Index()]
	own.products = own.products[:0]
	for j := range list {
		own.products = append(own.products, r.product(g, op, j, m))
		own.products[j].addTo(g, adds)
	}
	if r.throughput.run(g.W, i, list, m, g.Members(), g.ID, r.parts, g.Scratch.Work) {
		return
	}
	total := chunksOf(list, m)
	for lo, hi, ok := g.Next(total, 1); ok; lo, hi, ok = g.Next(total, 1) {
		for t := lo; t < hi; t++ {
			j, task := 0, t
			for n := list[0].kinds[0].of(m).Tasks(m); task >= n; n = list[j].kinds[0].of(m).Tasks(m) {
				j, task = j+1, task-n
			}
			p := &own.products[j]
			p.o.Prefetch = nil
			r.throughput.timed(g.W, &list[j], p, g.Scratch.Work, p.grid.slice(m, task))
		}
	}
}

// share lists, for each op that multiplies, the products that the workers compute together.
func (r *Products) share(workers int) {
	r.parts = make([]pool.Assignment, workers)
	r.shared = make([][]sharedProduct, len(r.shard.Model.Ops))
	for i := range r.shard.Model.Ops {
		op := &r.shard.Model.Ops[i]
		if op.Kind != model.OpMatMul {
			continue
		}
		for j := range op.Outs {
			c := sharedProduct{gated: gated(op)}
			for kind := range r.kinds {
				c.kinds = append(c.kinds, r.kinds[kind][op.W[j]])
			}
			r.shared[i] = append(r.shared[i], c)
		}
	}
}
