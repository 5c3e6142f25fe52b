package exec

import (
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/model"
	"sandwich/runtime/pool"
)

// product is a list of slices to compute: C = A W^T (+ bias) or, where up is set, C = act(A W^T, A
// up^T) without ever storing the two factors (Shazeer: GLU Variants Improve Transformer, 2020).
// An epilogue works on strips of a slice while they are in the second-level cache.
type product struct {
	gemm *Gemm
	grid *Gemm // of the main class: tasks are slices of its grid, whoever computes them
	o    Operands
	up   *Gemm
	upO  Operands // its C is not used
	act  microkernel.GLU
	gelu bool // C = gelu(A W^T)
	sum  bool // C += A W^T: the product is complete before it is added

	own   unsafe.Pointer // where a patch is computed that does not go to C, or nil
	ownAt patch          // that patch
	late  bool           // and what is left for when it goes there: its sum or its activation
}

// stripBytes is how much of a factor or a summand a worker holds at a time.
const stripBytes = 256 << 10

// pairScratch is the memory one worker needs for a gated op in a forward of so many rows: a strip
// of either factor, and the widened panels of either weight.
func (r *rank) pairScratch(op *model.Op, rows int) int {
	if r.gemms[op.W[0]] == nil { // it is not cut, and with another rank
		return 0
	}
	rows = r.shard.model.RowsOf(op.Outs[0], rows)
	most := 0
	for class := range 1 + len(r.others) {
		gate, up := r.of(class)[op.W[0]], r.of(class)[op.W[1]]
		strip := 0
		for _, rule := range gate.rules {
			strip = max(strip, rule.gemm.stripSize(rows))
		}
		most = max(most, 2*strip+max(gate.scratchBytes, up.scratchBytes))
	}
	return most
}

// sumScratch is the memory one worker needs for an op that adds.
func (r *rank) sumScratch(op *model.Op, rows int) (most int) {
	for class := range 1 + len(r.others) {
		for _, wi := range op.W {
			if g := r.of(class)[wi]; g != nil {
				for _, rule := range g.rules {
					most = max(most, rule.gemm.stripSize(rows)+rule.gemm.ScratchBytes())
				}
			}
		}
	}
	return most
}

// stripSize is the bytes of a strip: at least as wide as a register tile.
func (g *Gemm) stripSize(rows int) int {
	if g.bm > 0 {
		rows = min(rows, g.bm)
	}
	return max(stripBytes, 4*rows*g.s.Kernel.NR)
}

// stripWidth is the columns of a strip of so many rows.
func (g *Gemm) stripWidth(rows int) int {
	nr := g.s.Kernel.NR
	return max(nr, g.stripSize(rows)/(4*rows)/nr*nr)
}

// run computes slice number task.
func (p *product) run(scratch unsafe.Pointer, task int) { p.fill(scratch, p.grid.patch(p.o.M, task)) }

// fill computes a patch that begins on a panel and is a slice of the main class, or less.
func (p *product) fill(scratch unsafe.Pointer, whole patch) {
	if p.grid == p.gemm {
		p.compute(scratch, whole)
		return
	}
	p.region(scratch, whole)
}

// region computes a patch of any size that begins on a panel, in slices of the class at work.
func (p *product) region(scratch unsafe.Pointer, whole patch) {
	g, then := p.gemm, p.o.Then
	n := g.slices(whole)
	for i := range n {
		if p.o.Then = then; i+1 < n {
			p.o.Then = g.block(&p.o, g.slice(whole, i+1).n0, 0)
		}
		p.compute(scratch, g.slice(whole, i))
	}
	p.o.Then = then
}

// slices is how many slices of the schedule's size a patch has.
func (g *Gemm) slices(p patch) int {
	if p.m0 >= p.m1 || p.n0 >= p.n1 {
		return 0
	}
	return g.sliceRows(p) * ((p.n1 - p.n0 + g.bn - 1) / g.bn)
}

// sliceRows is how many of them stand one below the other.
func (g *Gemm) sliceRows(p patch) int {
	if g.bm == 0 {
		return 1
	}
	return (p.m1 - p.m0 + g.bm - 1) / g.bm
}

// slice is slice i of a patch. Rows are spread evenly; neighbours share columns.
func (g *Gemm) slice(p patch, i int) patch {
	rows, height := g.sliceRows(p), p.m1-p.m0
	r, n := i%rows, p.n0+i/rows*g.bn
	return patch{p.m0 + height*r/rows, p.m0 + height*(r+1)/rows, n, min(n+g.bn, p.n1)}
}

// place is where an element of the result goes, and the bytes between rows.
func (p *product) place(m, n int) (to unsafe.Pointer, stride int) {
	if p.own == nil {
		return at(p.o.C, p.o.CStride, m, n), p.o.CStride
	}
	stride = 4 * (p.ownAt.n1 - p.ownAt.n0)
	return at(p.own, stride, m-p.ownAt.m0, n-p.ownAt.n0), stride
}

// compute computes a patch that begins on a register tile and is no taller than a slice.
func (p *product) compute(scratch unsafe.Pointer, whole patch) {
	g := p.gemm
	to, stride := p.place(whole.m0, whole.n0)
	sum, gelu := p.sum && !p.late, p.gelu && !p.late
	if p.up == nil && !sum && !gelu {
		g.compute(scratch, &p.o, whole, to, stride, p.o.Then)
		return
	}
	rows := whole.m1 - whole.m0
	size, width := g.stripSize(rows), g.stripWidth(rows)
	gate := unsafe.Add(scratch, size) // rows of C lie far apart, and what is worked on is near in strips
	panels := gate
	if p.up != nil {
		panels = unsafe.Add(gate, size)
	}
	for n := whole.n0; n < whole.n1; n += width {
		strip := patch{whole.m0, whole.m1, n, min(n+width, whole.n1)}
		c, columns := (*float32)(at(to, stride, 0, n-whole.n0)), strip.n1-n
		then := p.o.Then
		if strip.n1 < whole.n1 {
			then = g.block(&p.o, strip.n1, 0)
		}
		if p.up == nil {
			g.compute(panels, &p.o, strip, scratch, 4*columns, then)
		} else {
			g.compute(panels, &p.o, strip, gate, 4*columns, p.up.block(&p.upO, n, 0))
			p.up.compute(panels, &p.upO, strip, scratch, 4*columns, then)
		}
		if !p.late {
			p.finish(c, stride/4, scratch, rows, columns)
		}
	}
}

// finish makes of a strip, which is in scratch, what belongs where it goes to.
func (p *product) finish(to *float32, stride int, scratch unsafe.Pointer, rows, columns int) {
	v, from := p.gemm.vec, (*float32)(scratch)
	switch {
	case p.sum:
		v.AddRows(to, stride, from, columns, rows, columns)
	case p.gelu:
		v.GELURows(to, stride, from, columns, rows, columns)
	default:
		gate := (*float32)(unsafe.Add(scratch, p.gemm.stripSize(rows)))
		glu(p.act, v, to, stride, gate, from, rows, columns)
	}
}

// glu is to = act(gate, up), in calls of bounded length.
func glu(act microkernel.GLU, v *microkernel.Vec, to *float32, stride int, gate, up *float32, rows, columns int) {
	const elements = 256 << 10 // some 100 microseconds
	for step, done := max(1, elements/columns), 0; done < rows; done += step {
		v.GLURows(act, addElems(to, done*stride), stride, addElems(gate, done*columns), columns,
			addElems(up, done*columns), columns, min(step, rows-done), columns)
	}
}

// aside computes a patch into memory of the worker's own, but for what bring does.
func (p *product) aside(scratch, own unsafe.Pointer, whole patch) {
	p.own, p.ownAt = own, whole
	p.late = p.sum || p.gelu || p.up != nil && p.oneStrip(whole)
	p.fill(scratch, whole)
}

// bring takes the patch to C, or what becomes of it on the way. In scratch is what aside left.
func (p *product) bring(scratch unsafe.Pointer, whole patch) {
	rows, n := whole.m1-whole.m0, whole.n1-whole.n0
	to, stride := (*float32)(at(p.o.C, p.o.CStride, whole.m0, whole.n0)), p.o.CStride/4
	own := (*float32)(p.own)
	switch {
	case !p.late:
		copyRows(to, stride, own, n, rows, n)
	case p.sum:
		p.gemm.vec.AddRows(to, stride, own, n, rows, n)
	case p.gelu:
		p.gemm.vec.GELURows(to, stride, own, n, rows, n)
	default:
		p.finish(to, stride, scratch, rows, n)
	}
}

// oneStrip says that both factors of all of a patch are in scratch when it is computed.
func (p *product) oneStrip(whole patch) bool {
	return p.grid == p.gemm && whole.n1-whole.n0 <= p.gemm.stripWidth(whole.m1-whole.m0)
}

// runShare computes the slices that the scheme gives to a worker: one block of the grid of slices.
func (p *product) runShare(scratch unsafe.Pointer, worker int) {
	s := &p.gemm.s
	rows, cols := p.gemm.grid(p.o.M)
	i0, i1 := pool.Split(rows, s.WaysM, worker/s.WaysN, 1)
	j0, j1 := pool.Split(cols, s.WaysN, worker%s.WaysN, 1)
	for j := j0; j < j1; j++ {
		for i := i0; i < i1; i++ {
			p.o.Then = nil
			if i+1 < i1 {
				p.o.Then = p.gemm.first(&p.o, j*rows+i+1)
			} else if j+1 < j1 {
				p.o.Then = p.gemm.first(&p.o, (j+1)*rows+i0)
			}
			p.run(scratch, j*rows+i)
		}
	}
}
