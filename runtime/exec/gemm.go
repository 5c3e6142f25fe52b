package exec

import (
	"errors"
	"fmt"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/plans"
)

// Operands are the addresses of one product C[M,N] = A[M,K] * W[N,K]^T (+ Bias). Strides are bytes
// between rows. For a weight whose compute path rounds activations A is read from Rounded.
type Operands struct {
	M       int
	W       *Packed
	A       unsafe.Pointer
	AStride int
	C       unsafe.Pointer
	CStride int
	Scale   *float32       // of the product, before the bias is added; or nil
	Bias    unsafe.Pointer // [N]float32 or nil
	// weights that the worker will likely read after the slice at hand, for kernels to prefetch; or
	// nil
	Then    unsafe.Pointer
	Rounded roundedRows
}

// callWork bounds one kernel call to some 100 microseconds, because generated code cannot be
// preempted: multiply-adds where arithmetic limits, weight bytes where memory does.
const (
	callWork  = 8 << 20
	callBytes = 1 << 20
)

// Gemm runs products of one weight shape under one schedule: the GEMM that serving and tuning share
// (DESIGN rule 2). It cuts C into slices of BM x BN, the tasks that workers take; each walks k in
// steps of BK and adds to the stored C. It is immutable and safe for concurrent use.
type Gemm struct {
	s      plans.Schedule
	layout microkernel.Layout
	vec    *microkernel.Vec

	kernel *microkernel.Kernel
	widen  *microkernel.Widener // nil without panel widening
	bm     int                  // 0: all rows
	bn, bk int
	panel  int // bytes between panels
}

// NewGemm compiles a schedule for a weight shape.
func NewGemm(k *Kernels, s plans.Schedule, key plans.WeightKey) (*Gemm, error) {
	t, err := microkernel.ParseWeightType(key.Type)
	if err != nil {
		return nil, err
	}
	g := &Gemm{s: s, layout: microkernel.Layout{Type: t, N: key.N, K: key.K}, vec: k.Vec}
	if err := g.layout.Validate(); err != nil {
		return nil, err
	}
	if err := checkSchedule(s, g.layout); err != nil {
		return nil, err
	}
	g.bm, g.bn, g.bk, g.panel = s.BM, s.BN, s.BK, g.layout.PanelStride()
	if g.bn == 0 || g.bn > key.N {
		g.bn = roundUp(key.N, s.Kernel.NR)
	}
	if g.bk == 0 || g.bk > key.K {
		g.bk = key.K
	}
	if g.kernel, err = k.Build(s.Kernel); err != nil {
		return nil, err
	}
	if s.Widen {
		g.widen, err = microkernel.NewWidener(s.Kernel.ISA, t)
	}
	return g, err
}

// checkSchedule refuses slices that would cut where the layout cannot be cut.
func checkSchedule(s plans.Schedule, l microkernel.Layout) error {
	switch {
	case s.BM < 0 || s.BN < 0 || s.BK < 0 || s.WaysM < 0 || s.WaysN < 0:
		return fmt.Errorf("slice %dx%dx%d with ways %dx%d has a negative size", s.BM, s.BN, s.BK, s.WaysM, s.WaysN)
	case s.BN%s.Kernel.NR != 0:
		return fmt.Errorf("slice width %d is not a multiple of NR %d", s.BN, s.Kernel.NR)
	case s.Pack && s.BM == 0:
		return errors.New("packed activations need a slice of bounded height")
	case s.BK%l.Type.KStep() != 0:
		return fmt.Errorf("slice depth %d is not a multiple of the %s block of %d", s.BK, l.Type, l.Type.KStep())
	case !s.Widen && s.Kernel.B != l.Type:
		return fmt.Errorf("kernel %s does not read %s weights", s.Kernel, l.Type)
	case s.Widen && (s.Kernel.B != microkernel.F32 || l.Type == microkernel.F32):
		return fmt.Errorf("kernel %s does not read widened panels: its weight type must be f32", s.Kernel)
	}
	return nil
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// grid is the number of slices along m and n.
func (g *Gemm) grid(m int) (rows, cols int) {
	rows = 1
	if g.bm > 0 {
		rows = (m + g.bm - 1) / g.bm
	}
	return rows, (g.layout.N + g.bn - 1) / g.bn
}

// Tasks is the number of slices of a product of m rows.
func (g *Gemm) Tasks(m int) int {
	rows, cols := g.grid(m)
	return rows * cols
}

// ScratchBytes is the memory one worker needs for packed activations and widened panels.
func (g *Gemm) ScratchBytes() int {
	if g.widen == nil {
		return g.packBytes()
	}
	return g.packBytes() + g.bn/microkernel.PanelWidth*g.widePanelBytes()
}

func (g *Gemm) packBytes() int {
	if !g.s.Pack {
		return 0
	}
	return g.bm * packedStride(g.rowBytes(g.bk))
}

func (g *Gemm) widePanelBytes() int { return g.bk*4*microkernel.PanelWidth + cacheLine }

// Run computes slice number task. scratch holds ScratchBytes and belongs to the calling worker.
func (g *Gemm) Run(scratch unsafe.Pointer, task int, o *Operands) {
	p := g.patch(o.M, task)
	g.compute(scratch, o, p, at(o.C, o.CStride, p.m0, p.n0), o.CStride, o.Then)
}

// first is where the weights of slice number task begin, nil where there is none such.
func (g *Gemm) first(o *Operands, task int) unsafe.Pointer {
	if task >= g.Tasks(o.M) || g.widen != nil {
		return nil
	}
	return g.block(o, g.patch(o.M, task).n0, 0)
}

// block is where the weights of columns n, a multiple of the panel width, begin at k.
func (g *Gemm) block(o *Operands, n, k int) unsafe.Pointer {
	return unsafe.Add(o.W.Data, n/microkernel.PanelWidth*g.panel+microkernel.PanelOffset(g.layout.Type, k))
}

// patch is the rows and columns of C that a slice covers.
type patch struct{ m0, m1, n0, n1 int }

// patch is what slice number task of a product of m rows covers.
func (g *Gemm) patch(m, task int) patch {
	rows, _ := g.grid(m)
	// Neighbouring tasks share columns, so that workers side by side read the same panels from the
	// shared cache.
	i, j := task%rows, task/rows
	p := patch{m0: 0, m1: m, n0: j * g.bn}
	if g.bm > 0 {
		// Rows are spread evenly over the slices, so that the last one is not a sliver.
		p.m0, p.m1 = m*i/rows, m*(i+1)/rows
	}
	p.n1 = min(p.n0+g.bn, g.layout.N)
	return p
}

// compute fills a patch that begins on a panel, at most BN columns at a time, and BM rows where
// they are packed; c is its first element. The kernel prefetches then at the end.
func (g *Gemm) compute(scratch unsafe.Pointer, o *Operands, p patch, c unsafe.Pointer, stride int,
	then unsafe.Pointer) {
	rows := max(1, p.m1-p.m0)
	if g.s.Pack {
		rows = g.bm
	}
	for n := p.n0; n < p.n1; n += g.bn {
		for m := p.m0; m < p.m1; m += rows {
			s := slice{patch: patch{m, min(m+rows, p.m1), n, min(n+g.bn, p.n1)}, c: at(c, stride, m-p.m0, n-p.n0),
				cStride: stride}
			switch {
			case s.m1 < p.m1:
				s.then = g.block(o, n, 0)
			case s.n1 < p.n1:
				s.then = g.block(o, s.n1, 0)
			default:
				s.then = then
			}
			g.runSlice(scratch, o, &s)
		}
	}
}

// runSlice walks k in steps of BK and adds to the stored C.
func (g *Gemm) runSlice(scratch unsafe.Pointer, o *Operands, s *slice) {
	for s.k0 = 0; s.k0 < g.layout.K; s.k0 += g.bk {
		s.k1 = min(s.k0+g.bk, g.layout.K)
		a := g.activations(scratch, o, s)
		if g.widen != nil {
			g.runWide(unsafe.Add(scratch, g.packBytes()), o, a, s)
		} else {
			g.runDirect(o, a, s)
		}
	}
	if o.Scale != nil {
		for row := range s.m1 - s.m0 {
			g.vec.Scale((*float32)(unsafe.Add(s.c, row*s.cStride)), *o.Scale, s.n1-s.n0)
		}
	}
	if o.Bias != nil {
		g.vec.AddBias((*float32)(s.c), s.cStride/4, s.m1-s.m0, (*float32)(unsafe.Add(o.Bias, 4*s.n0)), s.n1-s.n0)
	}
}

// slice is a piece of the iteration space of a product, and where its part of C begins.
type slice struct {
	patch
	k0, k1  int
	c       unsafe.Pointer
	cStride int
	then    unsafe.Pointer // weights that come after it
}
