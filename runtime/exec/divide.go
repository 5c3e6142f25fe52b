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
	chunks  bool // the op is handed out: a rate is not known, or does not hold for single pieces
	byRows  bool
	lo, hi  int
}

// stakeOf is the part that number id of some workers has of op number `op`, of m rows. All of them
// find the same division. It allocates nothing.
func (p *pacer) stakeOf(w *pool.Worker, op int, list []common, m int, members []int, id int) *stake {
	own := &p.own[w.Index()]
	s := &own.stakes[op]
	if s.m == m && s.version == own.view.version && s.team == &members[0] {
		return s
	}
	*s = stake{m: m, version: own.view.version, team: &members[0]}
	n := 0
	for i := range list {
		n += panelsWide(list[i].gemms[0].of(m))
	}
	s.byRows = m > n
	sides, part := own.sides[:len(members)], own.part[:len(members)]
	for j, index := range members {
		var known bool
		if sides[j], known = p.side(own.view, list, m, index, s.byRows); !known {
			s.chunks = true
			return s
		}
	}
	extent := n
	if s.byRows {
		extent = m
	}
	roofline.Split(extent, sides, part)
	for j := range id {
		s.lo += part[j]
	}
	s.hi = s.lo + part[id]
	return s
}

// side is a worker as a party of a division, how fast it is and how coarse; false where that is not
// known, or does not hold for single pieces.
func (p *pacer) side(v *rateView, list []common, m, index int, byRows bool) (side roofline.Side, known bool) {
	seconds, columns := 0.0, 0
	side.Tile = 1
	for i := range list {
		phase := list[i].gemms[p.classOf[index]]
		gemm, meter := phase.of(m), meterOf(phase.meter, m, list[i].gated)
		rate := v.rate[meter*p.workers+index]
		if rate == 0 || !v.steady[meter] {
			return side, false
		}
		columns += panelsWide(gemm)
		seconds += float64(panelsWide(gemm)) / rate
		if byRows {
			side.Tile = max(side.Tile, gemm.s.Kernel.MR)
		} else {
			side.Tile = max(side.Tile, gemm.s.Kernel.NR)
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
	if whole.m0 >= whole.m1 || whole.n0 >= whole.n1 {
		return
	}
	began := time.Now()
	r.region(w, scratch, whole)
	p.add(w, meterOf(c.gemms[0].meter, r.o.M, c.gated), whole.cells(), began)
}

// cells is how many elements of C there are.
func (p patch) cells() int { return (p.m1 - p.m0) * (p.n1 - p.n0) }

// divided is matMul of unlike workers.
func (e *Executor) divided(g *group, i int, op *model.Op, m int, adds bool) {
	list := g.rank.common[i]
	s := e.pacer.stakeOf(g.w, i, list, m, g.members(), g.id)
	scratch := e.scratch[g.w.Index()].gemm
	if s.chunks {
		e.handOut(g, op, list, m, adds, scratch)
		return
	}
	from := 0
	for j := range list {
		p := g.product(op, j, m)
		p.addTo(g, adds)
		e.pacer.timed(g.w, &list[j], &p, scratch, s.of(from, p.gemm.layout.N))
		from += panelsWide(p.gemm)
	}
}

// handOut gives out the slices of the main class one by one.
func (e *Executor) handOut(g *group, op *model.Op, list []common, m int, adds bool, scratch unsafe.Pointer) {
	total := 0
	for j := range list {
		total += list[j].gemms[0].of(m).Tasks(m)
	}
	for lo, hi, ok := g.next(total, 1); ok; lo, hi, ok = g.next(total, 1) {
		for t := lo; t < hi; t++ {
			j, task := 0, t
			for n := list[0].gemms[0].of(m).Tasks(m); task >= n; n = list[j].gemms[0].of(m).Tasks(m) {
				j, task = j+1, task-n
			}
			p := g.product(op, j, m)
			p.addTo(g, adds)
			e.pacer.timed(g.w, &list[j], &p, scratch, p.grid.patch(m, task))
		}
	}
}

// shareOut notes, for each op that multiplies, what unlike workers of a rank compute together.
func (r *rank) shareOut(classes int) {
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
