package kernels

import (
	"sandwich/microkernel/devgen"
)

// rowSize is the workgroup of kernels that handle elements one by one.
const rowSize = 64

// elements begins a kernel of n elements per row: the invocation's element and row.
func elements(b *devgen.Builder) (i, row devgen.Value) {
	return b.MulAdd(b.Builtin(devgen.GroupX), b.U(rowSize), b.Builtin(devgen.LocalIndex)), b.Builtin(devgen.GroupY)
}

// RowGrid returns the workgroups of AddRows, GatherRows and Embed for rows of n elements.
func RowGrid(n, rows int) [3]int { return [3]int{ceil(n, rowSize), rows, 1} }

// AddRows builds the kernel dst[row][i] += src[row][i].
//
// Bindings: dst, src (rows of float32). Push words: n, dst_stride, src_stride.
func AddRows() (*devgen.Kernel, error) {
	b := devgen.NewBuilder("add_rows", rowSize)
	dst, src := b.Binding("dst", devgen.ReadWrite), b.Binding("src", devgen.Read)
	n, dstStride := b.Push("n", devgen.U32), b.Push("dst_stride", devgen.U32)
	srcStride := b.Push("src_stride", devgen.U32)
	i, row := elements(b)
	b.If(b.Less(i, n), func() {
		at := b.MulAdd(row, dstStride, i)
		b.Store(dst, at, b.FAdd(b.LoadF(dst, at), b.LoadF(src, b.MulAdd(row, srcStride, i))))
	})
	return b.Build()
}

// GatherRows builds the kernel dst[row][i] = src[index[row]][i] * scale.
//
// Bindings: dst, src (rows of float32), index. Push words: n, dst_stride, src_stride, scale
// (float32).
func GatherRows() (*devgen.Kernel, error) {
	b := devgen.NewBuilder("gather_rows", rowSize)
	dst, src, index := b.Binding("dst", devgen.Write), b.Binding("src", devgen.Read), b.Binding("index", devgen.Read)
	n, dstStride := b.Push("n", devgen.U32), b.Push("dst_stride", devgen.U32)
	srcStride := b.Push("src_stride", devgen.U32)
	scale := b.Push("scale", devgen.F32)
	i, row := elements(b)
	b.If(b.Less(i, n), func() {
		from := b.MulAdd(b.Load(index, row), srcStride, i)
		b.Store(dst, b.MulAdd(row, dstStride, i), b.FMul(b.LoadF(src, from), scale))
	})
	return b.Build()
}

// CopyGrid returns the workgroups of Copy for n words.
func CopyGrid(n int) [3]int { return [3]int{ceil(n, rowSize), 1, 1} }

// Copy builds the kernel that copies words, such as KV blocks.
//
// Bindings: dst, src. Push words: n, dst_first, src_first.
func Copy() (*devgen.Kernel, error) {
	b := devgen.NewBuilder("copy", rowSize)
	dst, src := b.Binding("dst", devgen.Write), b.Binding("src", devgen.Read)
	n, dstFirst, srcFirst := b.Push("n", devgen.U32), b.Push("dst_first", devgen.U32), b.Push("src_first", devgen.U32)
	i, _ := elements(b)
	b.If(b.Less(i, n), func() { b.Store(dst, b.Add(dstFirst, i), b.Load(src, b.Add(srcFirst, i))) })
	return b.Build()
}
