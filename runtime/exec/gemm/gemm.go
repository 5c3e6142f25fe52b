package gemm

import (
	"errors"
	"fmt"
	"unsafe"

	"sandwich/internal/num"
	"sandwich/microkernel"
	"sandwich/plans"
	"sandwich/runtime/exec/internal/raw"
	"sandwich/runtime/exec/tp"
)

// Operands are the addresses of one product C[M,N] = A[M,K] * W[N,K]^T (+ Bias). Strides are bytes
// between rows. If the compute path of W quantizes activations, A is read from Quantized.
type Operands struct {
	M         int
	W         *Packed
	A         unsafe.Pointer
	AStride   int
	C         unsafe.Pointer
	CStride   int
	Scale     *float32       // of the product, before the bias is added; or nil
	Bias      unsafe.Pointer // [N]float32 or nil
	Prefetch  unsafe.Pointer // weights to prefetch: those that the worker likely reads next; or nil
	Quantized tp.QuantizedRows
}

// SetQuantized sets the rows of activations in the form of a compute path, stride bytes apart.
func (o *Operands) SetQuantized(c microkernel.Compute, base unsafe.Pointer, stride int) {
	o.Quantized = tp.QuantizedRows{Compute: c, Base: base, Stride: stride}
}

// Limits of one kernel call, which Go cannot preempt: about 100 microseconds of multiply-adds if
// arithmetic limits it, of weight bytes if memory does.
const (
	callWork  = 8 << 20
	callBytes = 1 << 20
)

// Gemm runs products of one weight shape under one schedule, for serving and for tuning (DESIGN
// rule 2). It divides C into slices of BM x BN, which workers take as chunks; each slice walks k in
// steps of BK and adds to the stored C. It is immutable and safe for concurrent use.
type Gemm struct {
	s      plans.Schedule
	layout microkernel.Layout
	vec    *microkernel.Vec

	kernel *microkernel.Kernel
	widen  *microkernel.Widener // nil if panels are not dequantized first
	bm     int                  // 0: all rows
	bn, bk int
	panel  int // bytes between panels
}

// New compiles a schedule for a weight shape. It refuses slices that the weight layout does not
// allow and kernels that this host cannot run. vec has the vector kernels of the workers.
func New(vec *microkernel.Vec, s plans.Schedule, key plans.WeightKey) (*Gemm, error) {
	t, err := microkernel.ParseWeightType(key.Type)
	if err != nil {
		return nil, err
	}
	g := &Gemm{s: s, layout: microkernel.Layout{Type: t, N: key.N, K: key.K}, vec: vec}
	if err := g.layout.Validate(); err != nil {
		return nil, err
	}
	if err := checkSchedule(s, g.layout); err != nil {
		return nil, err
	}
	g.bm, g.bn, g.bk, g.panel = s.BM, s.BN, s.BK, g.layout.PanelStride()
	if g.bn == 0 || g.bn > key.N {
		g.bn = num.RoundUp(key.N, s.Kernel.NR)
	}
	if g.bk == 0 || g.bk > key.K {
		g.bk = key.K
	}
	if g.kernel, err = microkernel.Build(s.Kernel); err != nil {
		return nil, err
	}
	if s.Widen {
		g.widen, err = microkernel.NewWidener(s.Kernel.ISA, t)
	}
	return g, err
}

// checkSchedule refuses slices that would divide what the layout keeps together.
func checkSchedule(s plans.Schedule, l microkernel.Layout) error {
	switch {
	case s.BM < 0 || s.BN < 0 || s.BK < 0 || s.WaysM < 0 || s.WaysN < 0:
		return fmt.Errorf("slice %dx%dx%d with ways %dx%d has a negative size", s.BM, s.BN, s.BK, s.WaysM, s.WaysN)
	case s.BN%s.Kernel.NR != 0:
		return fmt.Errorf("slice width %d is not a multiple of NR %d", s.BN, s.Kernel.NR)
	case s.Pack && s.BM == 0:
		return errors.New("packed activations need a slice of bounded height")
	case s.BK%s.Kernel.Compute.KStep(l.Type) != 0:
		return fmt.Errorf("slice depth %d is not a multiple of the %s block of %d", s.BK, l.Type,
			s.Kernel.Compute.KStep(l.Type))
	case !s.Widen && s.Kernel.B != l.Type:
		return fmt.Errorf("kernel %s does not read %s weights", s.Kernel, l.Type)
	case s.Widen && (s.Kernel.B != microkernel.F32 || l.Type == microkernel.F32):
		return fmt.Errorf("kernel %s does not read widened panels: its weight type must be f32", s.Kernel)
	}
	return nil
}

// grid returns the number of slices along m and n.
func (g *Gemm) grid(m int) (rows, cols int) {
	rows = 1
	if g.bm > 0 {
		rows = (m + g.bm - 1) / g.bm
	}
	return rows, (g.layout.N + g.bn - 1) / g.bn
}

// Tasks returns the number of slices of a product of m rows.
func (g *Gemm) Tasks(m int) int {
	rows, cols := g.grid(m)
	return rows * cols
}

// ScratchBytes returns the memory that one worker needs for packed activations and widened panels.
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

func (g *Gemm) widePanelBytes() int { return g.bk*4*microkernel.PanelWidth + raw.CacheLine }

// Run computes slice number task. scratch has ScratchBytes and belongs to the calling worker.
func (g *Gemm) Run(scratch unsafe.Pointer, task int, o *Operands) {
	s := g.slice(o.M, task)
	g.compute(scratch, o, s, raw.At(o.C, o.CStride, s.m0, s.n0), o.CStride, o.Prefetch)
}

// first returns the address of the weights of slice number task, or nil if there is no such slice.
func (g *Gemm) first(o *Operands, task int) unsafe.Pointer {
	if task >= g.Tasks(o.M) || g.widen != nil {
		return nil
	}
	return g.weights(o, g.slice(o.M, task).n0, 0)
}

// weights returns the address of the weights of columns n, a multiple of the panel width, at k.
func (g *Gemm) weights(o *Operands, n, k int) unsafe.Pointer {
	return unsafe.Add(o.W.Data, n/microkernel.PanelWidth*g.panel+microkernel.PanelOffset(g.layout.Type, k))
}

// slice is a range of rows and a range of columns of C.
type slice struct{ m0, m1, n0, n1 int }

// elements returns the number of elements of the slice.
func (s slice) elements() int { return (s.m1 - s.m0) * (s.n1 - s.n0) }

// slice returns slice number task of a product of m rows. Neighboring tasks share columns, so that
// workers read the same panels from the shared cache at the same time.
func (g *Gemm) slice(m, task int) slice {
	rows, _ := g.grid(m)
	i, j := task%rows, task/rows
	s := slice{m0: 0, m1: m, n0: j * g.bn}
	if g.bm > 0 {
		// Slices have about equal heights, so that the last one is not much smaller.
		s.m0, s.m1 = m*i/rows, m*(i+1)/rows
	}
	s.n1 = min(s.n0+g.bn, g.layout.N)
	return s
}

// subslices returns the number of slices of the schedule's size in a slice of any size.
func (g *Gemm) subslices(s slice) int {
	if s.m0 >= s.m1 || s.n0 >= s.n1 {
		return 0
	}
	return g.subsliceRows(s) * ((s.n1 - s.n0 + g.bn - 1) / g.bn)
}

// subsliceRows returns the number of subslices along m.
func (g *Gemm) subsliceRows(s slice) int {
	if g.bm == 0 {
		return 1
	}
	return (s.m1 - s.m0 + g.bm - 1) / g.bm
}

// subslice returns subslice i. Subslices have about equal heights; neighbors share columns.
func (g *Gemm) subslice(s slice, i int) slice {
	rows, height := g.subsliceRows(s), s.m1-s.m0
	r, n := i%rows, s.n0+i/rows*g.bn
	return slice{s.m0 + height*r/rows, s.m0 + height*(r+1)/rows, n, min(n+g.bn, s.n1)}
}
