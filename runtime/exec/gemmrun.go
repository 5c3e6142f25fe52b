package exec

import (
	"unsafe"

	"sandwich/microkernel"
)

// runDirect multiplies packed panels as they lie, NR columns at a time: all rows of the slice pass over one group of
// panels while it is in the first-level cache.
func (g *Gemm) runDirect(o *Operands, s *slice) {
	nr := g.s.Kernel.NR
	stride := g.layout.PanelStride()
	args := g.args(o, s)
	args.BStride = stride
	step := g.depthPerCall()
	for n := s.n0; n < s.n1; n += nr {
		args.B = unsafe.Add(o.W.Data, n/microkernel.PanelWidth*stride)
		args.C = at(s.c, s.cStride, 0, n-s.n0)
		args.N = min(nr, s.n1-n)
		for k := s.k0; k < s.k1; k += step {
			args.K0, args.K1 = k, min(k+step, s.k1)
			args.Accumulate = k > 0
			g.rows(&args, s.m1-s.m0, g.after(o, s, n, args.K1))
		}
	}
}

// after is the block of weights that the slice multiplies after the one of columns n that ends at k; nil after its last.
func (g *Gemm) after(o *Operands, s *slice, n, k int) unsafe.Pointer {
	if k == s.k1 {
		if n, k = n+g.s.Kernel.NR, s.k0; n >= s.n1 {
			if n, k = s.n0, s.k1; k == g.layout.K {
				return nil
			}
		}
	}
	return unsafe.Add(o.W.Data, n/microkernel.PanelWidth*g.layout.PanelStride()+microkernel.PanelOffset(g.layout.Type, k))
}

// runWide dequantizes the slice's panels into float32 scratch once, and multiplies from there.
func (g *Gemm) runWide(scratch unsafe.Pointer, o *Operands, s *slice) {
	nr := g.s.Kernel.NR
	stride, wide := g.layout.PanelStride(), g.widePanelBytes()
	first := s.n0 / microkernel.PanelWidth
	last := (s.n1 + microkernel.PanelWidth - 1) / microkernel.PanelWidth
	for p := first; p < last; p++ {
		g.widen.Run(unsafe.Add(scratch, (p-first)*wide), unsafe.Add(o.W.Data, p*stride), s.k0, s.k1)
	}
	args := g.args(o, s)
	args.A = unsafe.Add(args.A, 4*s.k0)
	args.BStride = wide
	args.K0, args.K1 = 0, s.k1-s.k0
	args.Accumulate = s.k0 > 0
	for n := s.n0; n < s.n1; n += nr {
		args.B = unsafe.Add(scratch, (n/microkernel.PanelWidth-first)*wide)
		args.C = at(s.c, s.cStride, 0, n-s.n0)
		args.N = min(nr, s.n1-n)
		g.rows(&args, s.m1-s.m0, nil)
	}
}

// args are the operands that do not change inside a slice.
func (g *Gemm) args(o *Operands, s *slice) microkernel.GemmArgs {
	a := microkernel.GemmArgs{A: at(o.A, o.AStride, s.m0, 0), AStride: o.AStride, CStride: s.cStride}
	if o.W.quantizedInput() {
		a.A, a.AStride = unsafe.Add(o.Quant.base, s.m0*o.Quant.stride), o.Quant.stride
	}
	return a
}

// rows runs m rows in calls of bounded length; the last one prefetches from next.
func (g *Gemm) rows(args *microkernel.GemmArgs, m int, next unsafe.Pointer) {
	mr := g.s.Kernel.MR
	perCall := max(1, callWork/(mr*args.N*(args.K1-args.K0))) * mr
	if m <= perCall {
		args.M, args.Next = m, next
		g.kernel.Run(args)
		return
	}
	a, c := args.A, args.C
	args.Next = nil
	for done := 0; done < m; done += perCall {
		args.A = unsafe.Add(a, done*args.AStride)
		args.C = unsafe.Add(c, done*args.CStride)
		if args.M = min(perCall, m-done); done+args.M == m {
			args.Next = next
		}
		g.kernel.Run(args)
	}
	args.A, args.C = a, c
}

// depthPerCall bounds how much of k one call streams from memory.
func (g *Gemm) depthPerCall() int {
	const steps = 256 // of k: a multiple of every KStep
	bytes := microkernel.PanelOffset(g.layout.Type, steps) * g.s.Kernel.NR / microkernel.PanelWidth
	return max(1, callBytes/bytes) * steps
}

// at is the address of float32 element (row, col).
func at(base unsafe.Pointer, stride, row, col int) unsafe.Pointer {
	return unsafe.Add(base, row*stride+4*col)
}
