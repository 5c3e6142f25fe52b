package kernels

import (
	"sandwich/microkernel/devgen"
	"sandwich/microkernel/internal/arith"
)

// lanes is the number of virtual lanes of a reduction.
const lanes = arith.Lanes

// tree combines the sixteen lanes of a reduction, which begin at word `at` of a shared array, in
// the order of the CPU: lane i takes lane i+8, then i+4, i+2 and i+1.
func tree(b *devgen.Builder, from devgen.Array, at devgen.Value, combine func(x, y devgen.Value) devgen.Value,
) devgen.Value {
	var l [lanes]devgen.Value
	for i := range l {
		l[i] = b.LoadSharedF(from, b.Add(at, b.U(i)))
	}
	for h := lanes / 2; h > 0; h /= 2 {
		for i := range h {
			l[i] = combine(l[i], l[i+h])
		}
	}
	return l[0]
}

// reduceRows combines the words [row][64] of a shared array into [row][16], four positions each in
// ascending order, in a workgroup of size invocations.
func reduceRows(b *devgen.Builder, from, to devgen.Array, rows, size int, init devgen.Value,
	combine func(x, y devgen.Value) devgen.Value) {
	b.For(b.Builtin(devgen.LocalIndex), b.U(rows*lanes), b.U(size), func(i devgen.Value) {
		first := b.Add(b.Mul(b.Shr(i, b.U(4)), b.U(attentionSize)), b.And(i, b.U(lanes-1)))
		x := init
		for j := range attentionSize / lanes {
			x = combine(x, b.LoadSharedF(from, b.Add(first, b.U(j*lanes))))
		}
		b.StoreShared(to, i, x)
	})
	b.Barrier()
}

// rmsScale returns the factor of an RMS norm of n elements, given the sum of their squares.
func rmsScale(b *devgen.Builder, sum, n, eps devgen.Value) devgen.Value {
	mean := b.FDiv(sum, b.FromInt(n))
	return b.FDiv(b.F(1), b.FSqrt(b.FAdd(mean, eps)))
}
