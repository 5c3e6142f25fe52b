package exec

import (
	"fmt"
	"unsafe"

	"sandwich/microkernel"
)

// products are the two matrix products of attention on the blocks of the KV cache, which are packed weights: scores
// (queries x keys, N = positions) and values (probabilities x values, N = head dimensions). Cached halves are read
// directly for few rows; for many a block is widened once and read as float32.
type products struct {
	cached, wide pair
}

type pair struct{ scores, values panelProduct }

func newProducts(k *Kernels, l microkernel.KVLayout) (products, error) {
	elem := microkernel.F16
	if l.Elem == microkernel.KVF32 {
		elem = microkernel.F32
	}
	var p products
	var err error
	if p.cached, err = newPair(k, l, elem); err != nil {
		return p, err
	}
	p.wide, err = newPair(k, microkernel.KVLayout{HeadDim: l.HeadDim, Elem: microkernel.KVF32}, microkernel.F32)
	return p, err
}

func newPair(k *Kernels, l microkernel.KVLayout, t microkernel.WeightType) (pair, error) {
	spec, err := tileFor(k.isa, t)
	if err != nil {
		return pair{}, err
	}
	kernel, err := k.Build(spec)
	if err != nil {
		return pair{}, err
	}
	return pair{
		scores: panelProduct{kernel: kernel, nr: spec.NR, panelBytes: l.KPanelBytes()},
		values: panelProduct{kernel: kernel, nr: spec.NR, panelBytes: l.VPanelBytes()},
	}, nil
}

// tileFor is the register tile of attention products: as many rows as registers allow at a width that hides latency.
func tileFor(isa microkernel.ISA, t microkernel.WeightType) (microkernel.Spec, error) {
	for _, tile := range [][2]int{{12, 32}, {6, 64}, {6, 32}, {5, 16}, {4, 16}, {3, 16}, {1, 16}} {
		s := microkernel.Spec{ISA: isa, Compute: microkernel.ComputeF32, B: t, MR: tile[0], NR: tile[1], KU: 2}
		if s.Validate() == nil {
			return s, nil
		}
	}
	return microkernel.Spec{}, fmt.Errorf("no attention kernel for %s on %s", t, isa)
}

func (p *products) pick(wide bool) (scores, values *panelProduct) {
	if wide {
		return &p.wide.scores, &p.wide.values
	}
	return &p.cached.scores, &p.cached.values
}

// panelProduct multiplies rows by one block of the KV cache.
type panelProduct struct {
	kernel     *microkernel.Kernel
	nr         int
	panelBytes int
}

// productArgs is one product: c[rows][n] = a[rows][k] * b. Strides are in elements.
type productArgs struct {
	a       *float32
	aStride int
	rows    int
	b       unsafe.Pointer
	k, n    int
	c       *float32
	cStride int
}

func (p *panelProduct) run(o productArgs) {
	args := microkernel.GemmArgs{
		A: unsafe.Pointer(o.a), AStride: 4 * o.aStride, BStride: p.panelBytes, CStride: 4 * o.cStride, M: o.rows, K1: o.k,
	}
	for n := 0; n < o.n; n += p.nr {
		args.B = unsafe.Add(o.b, n/microkernel.PanelWidth*p.panelBytes)
		args.C = unsafe.Pointer(addElems(o.c, n))
		args.N = min(p.nr, o.n-n)
		p.kernel.Run(&args)
	}
}
