package exec

import (
	"time"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/roofline"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
)

// How the products of an op are divided among unlike workers (SMEPilot section 4.1): by the larger
// of their output dimensions, never along k, each worker a region of its own in the ratio of what
// it was measured to do. Elements of C are chains over k whoever computes them (DESIGN rule 6), so
// that no division changes a bit.

// common is a product that unlike workers compute together.
type common struct {
	gemms []*phaseGemm // by class of workers
	gated bool         // one of a gate and an up projection
}

// stake is a worker's part of an op: columns of its products laid side by side, each product's
// rounded up to panels, or rows of all of them. It holds for a number of rows, a team and a version
// of the rates.
type stake struct {
	m       int
	version uint64
	team    *int // the first of the team's members, which are written once
	// the op is handed out: a rate is not known, or a division would end no sooner
	chunks bool
	byRows bool
	lo, hi int
}

// stakeOf is the part that number id of some workers has of op number `op`, of m rows. All of them
// find the same division. It allocates nothing.
func (p *pacer) stakeOf(w *pool.Worker, op int, list []common, m int, members []int, id int) *stake {
	own := &p.own[w.Index()]
	s := &own.stakes[op]
	if s.m == m && s.version == own.view.version && s.team == &members[0] {
		return s
	}
	*s = stake{m: m, version: own.view.version, team: &members[0], byRows: byRows(list, m)}
	if s.chunks = !p.divide(w, list, m, members) || p.handsOut(own, list, m, s.byRows); !s.chunks {
		s.lo, s.hi = own.partOf(id)
	}
	return s
}

// handsOut says that chunks, which are taken by whoever is free, end as early as the division that
// own made last. That one ends later than its rates say: by as much as they are off beside each
// other, and where single pieces are far off them, by what helping at the end does not make up for.
func (p *pacer) handsOut(own *ownPace, list []common, m int, byRows bool) bool {
	off := hysteresis
	for i := range list {
		meter := meterOf(list[i].gemms[0].meter, m, list[i].gated)
		off = max(off, 2*own.view.spread[meter]-unsteady)
	}
	return roofline.EndInChunks(extent(list, m, byRows), chunksOf(list, m), own.sides) <=
		(1+off)*roofline.End(own.sides, own.part)
}

// chunksOf is how many chunks the products of an op have: slices of the main class.
func chunksOf(list []common, m int) (n int) {
	for i := range list {
		n += list[i].gemms[0].of(m).Tasks(m)
	}
	return n
}

// byRows says that products of m rows are taller than they are wide, those of an op side by side.
func byRows(list []common, m int) bool { return m > extent(list, m, false) }

// extent is the outputs that are divided.
func extent(list []common, m int, byRows bool) (n int) {
	if byRows {
		return m
	}
	for i := range list {
		n += panelsWide(list[i].gemms[0].of(m))
	}
	return n
}

// divide leaves the division of an op in the worker's own memory; false where it is not known.
func (p *pacer) divide(w *pool.Worker, list []common, m int, members []int) bool {
	own, rows := &p.own[w.Index()], byRows(list, m)
	own.sides, own.part = own.sides[:len(members)], own.part[:len(members)]
	for j, index := range members {
		var known bool
		if own.sides[j], known = p.side(own.view, list, m, index, rows); !known {
			return false
		}
	}
	roofline.Split(extent(list, m, rows), own.sides, own.part)
	return true
}

// partOf is where the part of a member begins and ends in the division that the worker made last.
func (own *ownPace) partOf(id int) (lo, hi int) {
	for j := range id {
		lo += own.part[j]
	}
	return lo, lo + own.part[id]
}

// side is a worker as a party of a division, how fast it is and how coarse; false where that is not
// known.
func (p *pacer) side(v *rateView, list []common, m, index int, byRows bool) (side roofline.Side, known bool) {
	seconds, columns := 0.0, 0
	side.Tile = 1
	for i := range list {
		phase := list[i].gemms[p.classOf[index]]
		gemm, meter := phase.of(m), meterOf(phase.meter, m, list[i].gated)
		rate := v.rate[meter*p.workers+index]
		if rate == 0 {
			return side, false
		}
		columns += panelsWide(gemm)
		seconds += float64(panelsWide(gemm)) / rate
		switch k := &gemm.s.Kernel; {
		case !byRows:
			side.Tile = max(side.Tile, k.NR)
		case k.MatrixUnit():
			side.Tile = max(side.Tile, k.MR)
		default: // rows are spread over tiles of about equal height, wherever they are cut
			side.Least = max(side.Least, k.MR)
		}
	}
	side.Rate = float64(columns) / seconds
	return side, true
}

// panelsWide is the columns of a product, up to whole panels.
func panelsWide(g *Gemm) int { return roundUp(g.layout.N, microkernel.PanelWidth) }

// of is what the stake has of a product of n columns, which begin at number `from` of those of all.
func (s *stake) of(from, n int) patch {
	if s.byRows {
		return patch{s.lo, s.hi, 0, n}
	}
	return patch{0, s.m, max(0, s.lo-from), min(n, s.hi-from)}
}

// timed computes a patch, whatever its size, and notes how long that took.
func (p *pacer) timed(w *pool.Worker, c *common, r *product, scratch unsafe.Pointer, whole patch) {
	began := time.Now()
	w.Lap(true)
	r.region(scratch, whole)
	w.Lap(false)
	p.add(w, meterOf(c.gemms[0].meter, r.o.M, c.gated), whole.cells(), began)
}

// cells is how many elements of C there are.
func (p patch) cells() int { return (p.m1 - p.m0) * (p.n1 - p.n0) }

// share computes the worker's part of an op, whose products are in its own memory, and then what
// others are late with; false where there is no division, and the op is to be handed out.
func (p *pacer) share(w *pool.Worker, op int, list []common, m int, members []int, id int, parts []pool.Stretch,
	scratch unsafe.Pointer) bool {
	s := p.stakeOf(w, op, list, m, members, id)
	if s.chunks {
		return false
	}
	class := w.Class()
	total := s.pieces(list, class)
	for i, ok := w.Front(&parts[id], total); ok; i, ok = w.Front(&parts[id], total) {
		p.piece(w, s, list, class, i, scratch)
	}
	if len(members) > 1 {
		p.help(w, list, s, members, id, parts, scratch)
	}
	return true
}

// help takes pieces from the end of the parts that others are not done with, of the latest first,
// as long as they would need longer than this worker does: a rate was wrong, or somebody lost a
// CPU.
func (p *pacer) help(w *pool.Worker, list []common, s *stake, members []int, id int, parts []pool.Stretch,
	scratch unsafe.Pointer) {
	own := &p.own[w.Index()]
	if !p.divide(w, list, s.m, members) {
		return
	}
	for {
		of, late := -1, own.sides[id].Rate
		theirs := *s
		for j, index := range members {
			if j == id || own.part[j] == 0 {
				continue
			}
			other := *s
			other.lo, other.hi = own.partOf(j)
			left := w.Left(&parts[j], other.pieces(list, p.classOf[index]))
			// half a piece is left of the one at work, at the mean
			if need := own.sides[id].Rate * own.sides[id].Rate / own.sides[j].Rate * (float64(left) + 0.5); left > 0 &&
				need > late {
				of, late, theirs = j, need, other
			}
		}
		if of < 0 {
			return
		}
		class := p.classOf[members[of]]
		if i, ok := w.Back(&parts[of], theirs.pieces(list, class)); ok {
			p.piece(w, &theirs, list, class, i, scratch)
		}
	}
}

// pieces is how many a stake has: slices of the class whose worker it is of, or some of them at
// once where there are very many.
func (s *stake) pieces(list []common, class int) int {
	n := s.slices(list, class)
	each := (n + pool.MaxPieces - 1) / pool.MaxPieces
	return (n + each - 1) / max(1, each)
}

func (s *stake) slices(list []common, class int) (n int) {
	from := 0
	for j := range list {
		g := list[j].gemms[class].of(s.m)
		n += g.slices(s.of(from, g.layout.N))
		from += panelsWide(g)
	}
	return n
}

// piece computes piece i of a stake of a worker of some class.
func (p *pacer) piece(w *pool.Worker, s *stake, list []common, class, i int, scratch unsafe.Pointer) {
	n := s.slices(list, class)
	each := (n + pool.MaxPieces - 1) / pool.MaxPieces
	for slice := i * each; slice < min((i+1)*each, n); slice++ {
		at, from := slice, 0
		for j := range list {
			g := list[j].gemms[class].of(s.m)
			whole := s.of(from, g.layout.N)
			if n := g.slices(whole); at >= n {
				at, from = at-n, from+panelsWide(g)
				continue
			}
			r := &p.own[w.Index()].products[j]
			r.o.Then = nil
			if at+1 < g.slices(whole) {
				r.o.Then = g.block(&r.o, g.slice(whole, at+1).n0, 0)
			}
			p.timed(w, &list[j], r, scratch, g.slice(whole, at))
			break
		}
	}
}

// divided is matMul of unlike workers.
func (e *Executor) divided(g *group, i int, op *model.Op, m int, adds bool) {
	list, own := g.rank.common[i], &e.pacer.own[g.w.Index()]
	scratch := e.scratch[g.w.Index()].gemm
	own.products = own.products[:0]
	for j := range list {
		own.products = append(own.products, g.product(op, j, m))
		own.products[j].addTo(g, adds)
	}
	if e.pacer.share(g.w, i, list, m, g.members(), g.id, g.rank.parts, scratch) {
		return
	}
	total := chunksOf(list, m)
	for lo, hi, ok := g.next(total, 1); ok; lo, hi, ok = g.next(total, 1) {
		for t := lo; t < hi; t++ {
			j, task := 0, t
			for n := list[0].gemms[0].of(m).Tasks(m); task >= n; n = list[j].gemms[0].of(m).Tasks(m) {
				j, task = j+1, task-n
			}
			p := &own.products[j]
			p.o.Then = nil
			e.pacer.timed(g.w, &list[j], p, scratch, p.grid.patch(m, task))
		}
	}
}

// shareOut notes, for each op that multiplies, what unlike workers of a rank compute together.
func (r *rank) shareOut(classes, workers int) {
	r.parts = make([]pool.Stretch, workers)
	r.common = make([][]common, len(r.shard.model.Ops))
	for i := range r.shard.model.Ops {
		op := &r.shard.model.Ops[i]
		if op.Kind != model.OpMatMul {
			continue
		}
		for j := range op.Outs {
			c := common{gated: gated(op)}
			for class := range classes {
				c.gemms = append(c.gemms, r.of(class)[op.W[j]])
			}
			r.common[i] = append(r.common[i], c)
		}
	}
}
