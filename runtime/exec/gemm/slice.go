package gemm

import (
	"unsafe"

	"sandwich/internal/num"
	"sandwich/microkernel"
	"sandwich/runtime/exec/internal/raw"
	"sandwich/runtime/mem"
)

// block is a slice and a range of k.
type block struct {
	slice
	k0, k1   int
	c        unsafe.Pointer // first element of the slice
	cStride  int
	prefetch unsafe.Pointer // weights that come after it
}

// compute computes a slice that begins on a panel, at most BN columns at a time, and BM rows if
// they are packed. c is its first element. The last kernel call prefetches the given weights.
func (g *Gemm) compute(scratch unsafe.Pointer, o *Operands, s slice, c unsafe.Pointer, stride int,
	prefetch unsafe.Pointer) {
	rows := max(1, s.m1-s.m0)
	if g.s.Pack {
		rows = g.bm
	}
	for n := s.n0; n < s.n1; n += g.bn {
		for m := s.m0; m < s.m1; m += rows {
			b := block{slice: slice{m, min(m+rows, s.m1), n, min(n+g.bn, s.n1)},
				c: raw.At(c, stride, m-s.m0, n-s.n0), cStride: stride}
			switch {
			case b.m1 < s.m1:
				b.prefetch = g.weights(o, n, 0)
			case b.n1 < s.n1:
				b.prefetch = g.weights(o, b.n1, 0)
			default:
				b.prefetch = prefetch
			}
			g.computeBlocks(scratch, o, &b)
		}
	}
}

// computeBlocks walks k in steps of BK and adds to the stored C.
func (g *Gemm) computeBlocks(scratch unsafe.Pointer, o *Operands, b *block) {
	for b.k0 = 0; b.k0 < g.layout.K; b.k0 += g.bk {
		b.k1 = min(b.k0+g.bk, g.layout.K)
		a := g.activations(scratch, o, b)
		if g.widen != nil {
			g.runWide(unsafe.Add(scratch, g.packBytes()), o, a, b)
		} else {
			g.runDirect(o, a, b)
		}
	}
	if o.Scale != nil {
		for row := range b.m1 - b.m0 {
			g.vec.Scale((*float32)(unsafe.Add(b.c, row*b.cStride)), *o.Scale, b.n1-b.n0)
		}
	}
	if o.Bias != nil {
		g.vec.AddBias((*float32)(b.c), b.cStride/4, b.m1-b.m0, (*float32)(unsafe.Add(o.Bias, 4*b.n0)), b.n1-b.n0)
	}
}

// runDirect multiplies packed panels in place, NR columns at a time: all rows of the slice use one
// group of panels while it is in the first-level cache.
func (g *Gemm) runDirect(o *Operands, a activations, b *block) {
	nr := g.s.Kernel.NR
	stride := g.panel
	args := microkernel.GemmArgs{A: a.base, AStride: a.stride, CStride: b.cStride, BStride: stride}
	step := g.depthPerCall(b.m1 - b.m0)
	from := microkernel.PanelOffset(g.layout.Type, b.k0)
	for n := b.n0; n < b.n1; n += nr {
		args.B = unsafe.Add(o.W.Data, n/microkernel.PanelWidth*stride+from)
		args.C = raw.At(b.c, b.cStride, 0, n-b.n0)
		args.N = min(nr, b.n1-n)
		for k := b.k0; k < b.k1; k += step {
			end := min(k+step, b.k1)
			args.K0, args.K1, args.Accumulate = k-b.k0, end-b.k0, k > 0
			g.rows(&args, b.m1-b.m0, g.after(o, b, n, end))
		}
	}
}

// after returns the weights that are multiplied after those of columns n that end at k.
func (g *Gemm) after(o *Operands, b *block, n, k int) unsafe.Pointer {
	if k == b.k1 {
		if n, k = n+g.s.Kernel.NR, b.k0; n >= b.n1 {
			if n, k = b.n0, b.k1; k == g.layout.K {
				return b.prefetch
			}
		}
	}
	return g.weights(o, n, k)
}

// runWide dequantizes the panels of the block into float32 scratch once and multiplies those.
func (g *Gemm) runWide(scratch unsafe.Pointer, o *Operands, a activations, b *block) {
	nr := g.s.Kernel.NR
	stride, wide := g.panel, g.widePanelBytes()
	first := b.n0 / microkernel.PanelWidth
	last := (b.n1 + microkernel.PanelWidth - 1) / microkernel.PanelWidth
	for p := first; p < last; p++ {
		g.widen.Run(unsafe.Add(scratch, (p-first)*wide), unsafe.Add(o.W.Data, p*stride), b.k0, b.k1)
	}
	args := microkernel.GemmArgs{A: a.base, AStride: a.stride, CStride: b.cStride, BStride: wide, K1: b.k1 - b.k0,
		Accumulate: b.k0 > 0}
	for n := b.n0; n < b.n1; n += nr {
		args.B = unsafe.Add(scratch, (n/microkernel.PanelWidth-first)*wide)
		args.C = raw.At(b.c, b.cStride, 0, n-b.n0)
		args.N = min(nr, b.n1-n)
		g.rows(&args, b.m1-b.m0, nil)
	}
}

// activations are the rows of A that a block reads: the address of the first element and the bytes
// between rows.
type activations struct {
	base   unsafe.Pointer
	stride int
}

// activations returns the rows in place, or copies them to contiguous rows if the schedule packs
// them.
func (g *Gemm) activations(scratch unsafe.Pointer, o *Operands, b *block) activations {
	a := activations{raw.At(o.A, o.AStride, b.m0, b.k0), o.AStride}
	if o.W.quantizes() {
		a = activations{o.Quantized.At(b.m0, b.k0), o.Quantized.Stride}
	}
	if !g.s.Pack {
		return a
	}
	bytes := g.rowBytes(b.k1 - b.k0)
	packed := activations{scratch, packedStride(bytes)}
	for r := range b.m1 - b.m0 {
		copy(unsafe.Slice((*byte)(unsafe.Add(packed.base, r*packed.stride)), bytes),
			unsafe.Slice((*byte)(unsafe.Add(a.base, r*a.stride)), bytes))
	}
	return packed
}

// rowBytes returns the size of k activations in the form that the kernel reads.
func (g *Gemm) rowBytes(k int) int {
	return g.s.Kernel.Compute.ActRowBytes(k)
}

// packedStride returns the distance in bytes between packed rows.
func packedStride(bytes int) int { return 4 * mem.RowStride((bytes+3)/4) }

// rows runs m rows in calls of bounded and about equal length. The last call prefetches next.
func (g *Gemm) rows(args *microkernel.GemmArgs, m int, next unsafe.Pointer) {
	mr := g.s.Kernel.MR
	perCall := max(mr, g.callWork()/(args.N*(args.K1-args.K0)))
	if m <= perCall {
		args.M, args.NextB = m, next
		g.kernel.Run(args)
		return
	}
	calls := (m + perCall - 1) / perCall
	perCall = num.RoundUp((m+calls-1)/calls, mr)
	a, c := args.A, args.C
	args.NextB = nil
	for done := 0; done < m; done += perCall {
		args.A = unsafe.Add(a, done*args.AStride)
		args.C = unsafe.Add(c, done*args.CStride)
		if args.M = min(perCall, m-done); done+args.M == m {
			args.NextB = next
		}
		g.kernel.Run(args)
	}
	args.A, args.C = a, c
}

// depthPerCall bounds how much of k one call streams from memory. A matrix unit converts weights in
// each call, so its calls have fewer k rather than fewer rows.
func (g *Gemm) depthPerCall(rows int) int {
	const steps = 256 // of k: a multiple of every KStep
	bytes := microkernel.PanelOffset(g.layout.Type, steps) * g.s.Kernel.NR / microkernel.PanelWidth
	calls := callBytes / bytes
	if g.s.Kernel.MatrixUnit() {
		calls = min(calls, g.callWork()/(max(1, rows)*g.s.Kernel.NR*steps))
	}
	return max(1, calls) * steps
}

// callWork returns the multiply-adds of a call. Kernels that keep sums in tiles do at least four
// times as many in the same time as others.
func (g *Gemm) callWork() int {
	if g.s.Kernel.KeepsSums() {
		return 4 * callWork
	}
	return callWork
}
