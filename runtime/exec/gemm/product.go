package gemm

import (
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/exec/internal/raw"
	"sandwich/runtime/exec/tp"
	"sandwich/runtime/model"
)

// product is C = A W^T (+ bias) or, with up, C = act(A W^T, A up^T) without storing the two factors
// (Shazeer: GLU Variants Improve Transformer, 2020). An epilogue works on segments of columns of a
// slice while they are in the second-level cache.
type product struct {
	gemm *Gemm
	grid *Gemm // of the main worker kind: its slices are the chunks for workers of every kind
	o    Operands
	up   *Gemm
	upO  Operands // its C is not used
	act  microkernel.GLU
	gelu bool // C = gelu(A W^T)
	sum  bool // C += A W^T: the product is complete before it is added

	private   unsafe.Pointer // buffer of a slice that does not go to C; nil: none
	privateAt slice          // that slice
	deferred  bool           // the sum or activation is left to commit
}

// segmentBytes is the size of a factor or a summand that a worker holds at a time.
const segmentBytes = 256 << 10

// segmentSize returns the size of a segment in bytes: it is at least as wide as a register tile.
func (g *Gemm) segmentSize(rows int) int {
	if g.bm > 0 {
		rows = min(rows, g.bm)
	}
	return max(segmentBytes, 4*rows*g.s.Kernel.NR)
}

// segmentWidth returns the columns of a segment of so many rows.
func (g *Gemm) segmentWidth(rows int) int {
	nr := g.s.Kernel.NR
	return max(nr, g.segmentSize(rows)/(4*rows)/nr*nr)
}

// sliceBytes returns the size of a slice of a product of so many rows.
func (g *Gemm) sliceBytes(rows int) int {
	if g.bm > 0 {
		rows = min(rows, g.bm)
	}
	return 4 * rows * g.bn
}

// computeChunk computes a slice that begins on a panel and is at most a slice of the main kind.
func (p *product) computeChunk(scratch unsafe.Pointer, s slice) {
	if p.grid == p.gemm {
		p.compute(scratch, s)
		return
	}
	p.computeAny(scratch, s)
}

// computeAny computes a slice of any size that begins on a panel, in slices of the kind at work.
func (p *product) computeAny(scratch unsafe.Pointer, s slice) {
	g, prefetch := p.gemm, p.o.Prefetch
	n := g.subslices(s)
	for i := range n {
		if p.o.Prefetch = prefetch; i+1 < n {
			p.o.Prefetch = g.weights(&p.o, g.subslice(s, i+1).n0, 0)
		}
		p.compute(scratch, g.subslice(s, i))
	}
	p.o.Prefetch = prefetch
}

// target returns where an element of the result goes, and the bytes between rows.
func (p *product) target(m, n int) (to unsafe.Pointer, stride int) {
	if p.private == nil {
		return raw.At(p.o.C, p.o.CStride, m, n), p.o.CStride
	}
	stride = 4 * (p.privateAt.n1 - p.privateAt.n0)
	return raw.At(p.private, stride, m-p.privateAt.m0, n-p.privateAt.n0), stride
}

// compute computes a slice that begins on a register tile and is no taller than a slice of the
// schedule.
func (p *product) compute(scratch unsafe.Pointer, s slice) {
	g := p.gemm
	to, stride := p.target(s.m0, s.n0)
	sum, gelu := p.sum && !p.deferred, p.gelu && !p.deferred
	if p.up == nil && !sum && !gelu {
		g.compute(scratch, &p.o, s, to, stride, p.o.Prefetch)
		return
	}
	rows := s.m1 - s.m0
	size, width := g.segmentSize(rows), g.segmentWidth(rows)
	gate := unsafe.Add(scratch, size) // in scratch rows are contiguous, in C they are far apart
	panels := gate
	if p.up != nil {
		panels = unsafe.Add(gate, size)
	}
	for n := s.n0; n < s.n1; n += width {
		segment := slice{s.m0, s.m1, n, min(n+width, s.n1)}
		c, columns := (*float32)(raw.At(to, stride, 0, n-s.n0)), segment.n1-n
		prefetch := p.o.Prefetch
		if segment.n1 < s.n1 {
			prefetch = g.weights(&p.o, segment.n1, 0)
		}
		if p.up == nil {
			g.compute(panels, &p.o, segment, scratch, 4*columns, prefetch)
		} else {
			g.compute(panels, &p.o, segment, gate, 4*columns, p.up.weights(&p.upO, n, 0))
			p.up.compute(panels, &p.upO, segment, scratch, 4*columns, prefetch)
		}
		if !p.deferred {
			p.finish(c, stride/4, scratch, rows, columns)
		}
	}
}

// finish applies the sum or activation to a segment in scratch and stores the result.
func (p *product) finish(to *float32, stride int, scratch unsafe.Pointer, rows, columns int) {
	v, from := p.gemm.vec, (*float32)(scratch)
	switch {
	case p.sum:
		v.AddRows(to, stride, from, columns, rows, columns)
	case p.gelu:
		v.GELURows(to, stride, from, columns, rows, columns)
	default:
		gate := (*float32)(unsafe.Add(scratch, p.gemm.segmentSize(rows)))
		glu(p.act, v, to, stride, gate, from, rows, columns)
	}
}

// glu computes to = act(gate, up) in calls of bounded length.
func glu(act microkernel.GLU, v *microkernel.Vec, to *float32, stride int, gate, up *float32, rows, columns int) {
	const elements = 256 << 10 // about 100 microseconds
	for step, done := max(1, elements/columns), 0; done < rows; done += step {
		v.GLURows(act, raw.Add(to, done*stride), stride, raw.Add(gate, done*columns), columns,
			raw.Add(up, done*columns), columns, min(step, rows-done), columns)
	}
}

// computePrivate computes a chunk into the private buffer, except what commit does.
func (p *product) computePrivate(scratch, private unsafe.Pointer, s slice) {
	p.private, p.privateAt = private, s
	p.deferred = p.sum || p.gelu || p.up != nil && p.oneSegment(s)
	p.computeChunk(scratch, s)
}

// commit moves the chunk that computePrivate left in the private buffer and in scratch to C.
func (p *product) commit(scratch unsafe.Pointer, s slice) {
	rows, n := s.m1-s.m0, s.n1-s.n0
	to, stride := (*float32)(raw.At(p.o.C, p.o.CStride, s.m0, s.n0)), p.o.CStride/4
	own := (*float32)(p.private)
	switch {
	case !p.deferred:
		raw.CopyRows(to, stride, own, n, rows, n)
	case p.sum:
		p.gemm.vec.AddRows(to, stride, own, n, rows, n)
	case p.gelu:
		p.gemm.vec.GELURows(to, stride, own, n, rows, n)
	default:
		p.finish(to, stride, scratch, rows, n)
	}
}

// oneSegment reports whether scratch holds both factors of an entire slice when it is computed.
func (p *product) oneSegment(s slice) bool {
	return p.grid == p.gemm && s.n1-s.n0 <= p.gemm.segmentWidth(s.m1-s.m0)
}

// run computes a worker's chunk of a product.
func (p *product) run(g *tp.Group, s slice) {
	if !g.Private(4 * s.elements()) {
		p.computeChunk(g.Scratch.Work, s)
		return
	}
	own := *p
	tp.Offer(g.W)
	own.computePrivate(g.Scratch.Work, g.Scratch.Private, s)
	tp.Commit(g.W)
	own.commit(g.Scratch.Work, s)
}

// gated reports whether an op is a product of a gate and an up projection.
func gated(op *model.Op) bool { return op.Act != model.NoActivation && op.Act != model.GELU }

// GLU has the gated unit of each activation.
var GLU = [...]microkernel.GLU{model.SwiGLU: microkernel.SwiGLU, model.GeGLU: microkernel.GeGLU,
	model.ClampedSwiGLU: microkernel.ClampedSwiGLU, model.SigmoidGLU: microkernel.SigmoidGLU}
