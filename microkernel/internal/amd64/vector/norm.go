package vector

import "sandwich/microkernel/internal/amd64/asm"

// normRows is the number of rows whose squares emitRMSNorm adds at a time: the lanes of one row's
// sum are a chain of dependent instructions.
const normRows = 4

// emitRMSNorm: P dst, x, weight; N dstStride, xStride, rows, n; F eps, float32(n).
func emitRMSNorm(g gen) {
	g.pointers(p0, p1, p2)
	g.Mov(rows, argN(2))
	g.Mov(n0, argN(3))
	single, next := g.NewLabel(), g.NewLabel()
	g.Bind(next)
	g.Cmp(rows, asm.Imm32(normRows))
	g.Jcc(asm.Less, single)
	g.rmsNorm(p1, asm.R13, asm.R14, asm.R15)
	g.Sub(rows, asm.Imm32(normRows))
	g.Jmp(next)
	g.Bind(single)
	g.OverRows(rows, func() { g.rmsNorm(p1) })
}

// rmsNorm normalizes consecutive rows starting at p1, one per register of row, whose first is p1,
// and advances p0 and p1.
func (g gen) rmsNorm(row ...asm.Reg) {
	const t, x = 2 * normRows, 2*normRows + 1
	acc := func(i int) int { return 2 * i } // with AVX2 also the next one
	for i := range row {
		g.Zero(acc(i))
		g.Zero(acc(i) + 1)
		if i > 0 {
			g.Mov(row[i], row[i-1])
			g.advance(row[i], 1, tmp)
		}
	}
	g.OverGroups(n0, func(h int, tail bool) {
		for i := range row {
			g.LoadGroup(g.V(x), g.Elem(row[i], h), h, tail)
			g.I(asm.VFMADD231PS, g.V(acc(i)+h), g.V(x), g.V(x))
		}
	})
	for i := range row {
		g.SumLanes(acc(i), t)
		g.inverseDeviation(acc(i), t)
		g.OverGroups(n0, func(h int, tail bool) {
			g.LoadGroup(g.V(x), g.Elem(row[i], h), h, tail)
			g.LoadGroup(g.V(t), g.Elem(p2, h), h, tail)
			g.I(asm.VMULPS, g.V(x), g.V(x), g.V(acc(i)))
			g.I(asm.VMULPS, g.V(x), g.V(x), g.V(t))
			g.StoreGroup(g.Elem(p0, h), g.V(x), h, tail)
		})
		g.advance(p0, 0, tmp)
	}
	g.Mov(p1, row[len(row)-1])
	g.advance(p1, 1, tmp)
}

// inverseDeviation replaces a sum of squares in lane 0 of acc by 1/sqrt(sum/n + eps), the arguments
// F of the norms, in every lane. It overwrites t.
func (g gen) inverseDeviation(acc, t int) {
	s := asm.X(acc)
	g.I(asm.VDIVSS, s, s, argF(1))
	g.I(asm.VADDSS, s, s, argF(0))
	g.I(asm.VSQRTSS, s, s, s)
	g.I(asm.VMOVSS, asm.X(t), g.ConstF32(1))
	g.I(asm.VDIVSS, s, asm.X(t), s)
	g.I(asm.VBROADCASTSS, g.V(acc), s)
}

// emitLayerNorm: P dst, x, weight, bias; N dstStride, xStride, rows, n; F eps, float32(n). The
// differences from the mean are stored in dst temporarily: when they are reloaded, the lanes of a
// partial group beyond the end are zero and add nothing to the sum of squares.
func emitLayerNorm(g gen) {
	const acc, t, x, mean, bias = 0, 2, 3, 4, 5 // acc+1 is the second half at AVX2
	g.pointers(p0, p1, p2, p3)
	g.Mov(rows, argN(2))
	g.Mov(n0, argN(3))
	s := asm.X(acc)
	g.OverRows(rows, func() {
		g.Zero(acc)
		g.Zero(acc + 1)
		g.OverGroups(n0, func(h int, tail bool) {
			g.LoadGroup(g.V(x), g.Elem(p1, h), h, tail)
			g.I(asm.VADDPS, g.V(acc+h), g.V(acc+h), g.V(x))
		})
		g.SumLanes(acc, t)
		g.I(asm.VDIVSS, s, s, argF(1))
		g.I(asm.VBROADCASTSS, g.V(mean), s)
		g.Zero(acc)
		g.Zero(acc + 1)
		g.OverGroups(n0, func(h int, tail bool) {
			g.LoadGroup(g.V(x), g.Elem(p1, h), h, tail)
			g.I(asm.VSUBPS, g.V(x), g.V(x), g.V(mean))
			g.StoreGroup(g.Elem(p0, h), g.V(x), h, tail)
			if tail {
				g.LoadGroup(g.V(x), g.Elem(p0, h), h, tail)
			}
			g.I(asm.VFMADD231PS, g.V(acc+h), g.V(x), g.V(x))
		})
		g.SumLanes(acc, t)
		g.inverseDeviation(acc, t)
		g.OverGroups(n0, func(h int, tail bool) {
			g.LoadGroup(g.V(x), g.Elem(p0, h), h, tail)
			g.LoadGroup(g.V(t), g.Elem(p2, h), h, tail)
			g.LoadGroup(g.V(bias), g.Elem(p3, h), h, tail)
			g.I(asm.VMULPS, g.V(x), g.V(x), g.V(acc))
			g.I(asm.VFMADD231PS, g.V(bias), g.V(x), g.V(t))
			g.StoreGroup(g.Elem(p0, h), g.V(bias), h, tail)
		})
		g.advance(p0, 0, tmp)
		g.advance(p1, 1, tmp)
	})
}

// emitL2Norm: P x; N stride, rows, n; F scale, eps.
func emitL2Norm(g gen) {
	const acc, t, x = 0, 2, 3 // acc+1 is the second half at AVX2
	g.pointers(p0)
	g.Mov(rows, argN(1))
	g.Mov(n0, argN(2))
	g.OverRows(rows, func() {
		g.Zero(acc)
		g.Zero(acc + 1)
		g.OverGroups(n0, func(h int, tail bool) {
			g.LoadGroup(g.V(x), g.Elem(p0, h), h, tail)
			g.I(asm.VFMADD231PS, g.V(acc+h), g.V(x), g.V(x))
		})
		g.SumLanes(acc, t)
		s := asm.X(acc)
		g.I(asm.VSQRTSS, s, s, s)
		g.I(asm.VMAXSS, s, s, argF(1))
		g.I(asm.VMOVSS, asm.X(t), argF(0))
		g.I(asm.VDIVSS, s, asm.X(t), s)
		g.I(asm.VBROADCASTSS, g.V(acc), s)
		g.OverGroups(n0, func(h int, tail bool) {
			g.LoadGroup(g.V(x), g.Elem(p0, h), h, tail)
			g.I(asm.VMULPS, g.V(x), g.V(x), g.V(acc))
			g.StoreGroup(g.Elem(p0, h), g.V(x), h, tail)
		})
		g.advance(p0, 0, tmp)
	})
}
