package exec

import (
	"unsafe"

	"sandwich/microkernel"
	"sandwich/runtime/mem"
)

// runDirect multiplies packed panels as they lie, NR columns at a time: all rows of the slice pass
// over one group of panels while it is in the first-level cache.
func (g *Gemm) runDirect(o *Operands, a activations, s *slice) {
	nr := g.s.Kernel.NR
	stride := g.panel
	args := microkernel.GemmArgs{A: a.base, AStride: a.stride, CStride: s.cStride, BStride: stride}
	step := g.depthPerCall(s.m1 - s.m0)
	from := microkernel.PanelOffset(g.layout.Type, s.k0)
	for n := s.n0; n < s.n1; n += nr {
		args.B = unsafe.Add(o.W.Data, n/microkernel.PanelWidth*stride+from)
		args.C = at(s.c, s.cStride, 0, n-s.n0)
		args.N = min(nr, s.n1-n)
		for k := s.k0; k < s.k1; k += step {
			end := min(k+step, s.k1)
			args.K0, args.K1, args.Accumulate = k-s.k0, end-s.k0, k > 0
			g.rows(&args, s.m1-s.m0, g.after(o, s, n, end))
		}
	}
}

// after is the block of weights that is multiplied after the one of columns n that ends at k.
func (g *Gemm) after(o *Operands, s *slice, n, k int) unsafe.Pointer {
	if k == s.k1 {
		if n, k = n+g.s.Kernel.NR, s.k0; n >= s.n1 {
			if n, k = s.n0, s.k1; k == g.layout.K {
				return s.then
			}
		}
	}
	return g.block(o, n, k)
}

// runWide dequantizes the slice's panels into float32 scratch once, and multiplies from there.
func (g *Gemm) runWide(scratch unsafe.Pointer, o *Operands, a activations, s *slice) {
	nr := g.s.Kernel.NR
	stride, wide := g.panel, g.widePanelBytes()
	first := s.n0 / microkernel.PanelWidth
	last := (s.n1 + microkernel.PanelWidth - 1) / microkernel.PanelWidth
	for p := first; p < last; p++ {
		g.widen.Run(unsafe.Add(scratch, (p-first)*wide), unsafe.Add(o.W.Data, p*stride), s.k0, s.k1)
	}
	args := microkernel.GemmArgs{A: a.base, AStride: a.stride, CStride: s.cStride, BStride: wide, K1: s.k1 - s.k0,
		Accumulate: s.k0 > 0}
	for n := s.n0; n < s.n1; n += nr {
		args.B = unsafe.Add(scratch, (n/microkernel.PanelWidth-first)*wide)
		args.C = at(s.c, s.cStride, 0, n-s.n0)
		args.N = min(nr, s.n1-n)
		g.rows(&args, s.m1-s.m0, nil)
	}
}

// activations are the rows of A that a slice reads: where they begin, at its first k, and the bytes
// between them.
type activations struct {
	base   unsafe.Pointer
	stride int
}

// activations are in place, or packed to rows that lie side by side where the schedule wants that.
func (g *Gemm) activations(scratch unsafe.Pointer, o *Operands, s *slice) activations {
	a := activations{at(o.A, o.AStride, s.m0, s.k0), o.AStride}
	if o.W.roundsInput() {
		a = activations{o.Rounded.row(s.m0, s.k0), o.Rounded.stride}
	}
	if !g.s.Pack {
		return a
	}
	bytes := g.rowBytes(s.k1 - s.k0)
	packed := activations{scratch, packedStride(bytes)}
	for r := range s.m1 - s.m0 {
		copy(unsafe.Slice((*byte)(unsafe.Add(packed.base, r*packed.stride)), bytes),
			unsafe.Slice((*byte)(unsafe.Add(a.base, r*a.stride)), bytes))
	}
	return packed
}

// rowBytes is the length of k activations as the kernel reads them.
func (g *Gemm) rowBytes(k int) int {
	return g.s.Kernel.Compute.ActRowBytes(k)
}

// packedStride is the distance in bytes between packed rows.
func packedStride(bytes int) int { return 4 * mem.RowStride((bytes+3)/4) }

// rows runs m rows in calls of bounded and about equal length; the last one prefetches from next.
func (g *Gemm) rows(args *microkernel.GemmArgs, m int, next unsafe.Pointer) {
	mr := g.s.Kernel.MR
	perCall := max(mr, callWork/(args.N*(args.K1-args.K0)))
	if m <= perCall {
		args.M, args.NextB = m, next
		g.kernel.Run(args)
		return
	}
	calls := (m + perCall - 1) / perCall
	perCall = roundUp((m+calls-1)/calls, mr)
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

// depthPerCall bounds how much of k one call streams from memory. A matrix unit makes weights into
// bytes in each call, so that calls are rather shallow than low.
func (g *Gemm) depthPerCall(rows int) int {
	const steps = 256 // of k: a multiple of every KStep
	bytes := microkernel.PanelOffset(g.layout.Type, steps) * g.s.Kernel.NR / microkernel.PanelWidth
	calls := callBytes / bytes
	if g.s.Kernel.MatrixUnit() {
		calls = min(calls, callWork/(max(1, rows)*g.s.Kernel.NR*steps))
	}
	return max(1, calls) * steps
}

// at is the address of float32 element (row, col).
func at(base unsafe.Pointer, stride, row, col int) unsafe.Pointer {
	return unsafe.Add(base, row*stride+4*col)
}
