package kernels

import (
	"fmt"

	"sandwich/microkernel/devgen"
	"sandwich/microkernel/internal/arith"
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

// GatherKV describes the copy of the keys and values of the rows of a batch out of float16 blocks
// of the KV cache, in layers that follow each other at equal distances. out has, for each layer,
// row of the batch and head, HeadDim keys and then HeadDim values and zeros up to a multiple of 16.
//
// Bindings: kv (block 0 of KV head 0 of the first layer), segments (as of Rotate), out. Push words:
// rows (of the batch), kv_heads, head_words, block_words (as of Rotate), layer_words (from one
// layer to the next).
type GatherKV struct {
	HeadDim int // even
}

// Words returns the words of a head of a row.
func (o GatherKV) Words() int { return o.HeadDim/2 + o.valueWords() }

func (o GatherKV) valueWords() int { return ceil(o.HeadDim, lanes) * lanes / 2 }

// Grid returns the workgroups.
func (o GatherKV) Grid(layers, kvHeads, segments int) [3]int {
	return [3]int{layers, kvHeads, segments}
}

// Kernel builds the kernel. A workgroup copies a head of the rows of a segment.
func (o GatherKV) Kernel() (*devgen.Kernel, error) {
	if o.HeadDim < 2 || o.HeadDim > 1024 || o.HeadDim%2 != 0 {
		return nil, fmt.Errorf("copy of keys and values: heads of %d dimensions", o.HeadDim)
	}
	b := devgen.NewBuilder(fmt.Sprintf("gather_kv_%d", o.HeadDim), rowSize)
	kv, segments := b.Binding("kv", devgen.Read), b.Binding("segments", devgen.Read)
	out := b.Binding("out", devgen.Write)
	rows, kvHeads := b.Push("rows", devgen.U32), b.Push("kv_heads", devgen.U32)
	headWords, blockWords := b.Push("head_words", devgen.U32), b.Push("block_words", devgen.U32)
	layerWords := b.Push("layer_words", devgen.U32)
	local, layer, head := b.Builtin(devgen.LocalIndex), b.Builtin(devgen.GroupX), b.Builtin(devgen.GroupY)
	segment := b.Mul(b.Builtin(devgen.GroupZ), b.U(segmentWords))
	word := func(i int) devgen.Value { return b.Load(segments, b.Add(segment, b.U(i))) }
	row0, n, first, block := word(0), word(1), word(2), word(3)
	keys := b.Add(b.Mul(layer, layerWords), b.Mul(block, blockWords), b.Mul(head, headWords))
	values := b.Add(keys, b.U(arith.BlockPositions*o.HeadDim/2))
	b.Range(n, func(i devgen.Value) {
		position := b.Add(first, i)
		row := b.MulAdd(layer, rows, b.Add(row0, i))
		to := b.Mul(b.MulAdd(row, kvHeads, head), b.U(o.Words()))
		// A word of keys has one dimension of two positions.
		at := b.Add(keys, b.Mul(b.Shr(position, b.U(4)), b.U(o.HeadDim*lanes/2)),
			b.And(b.Shr(position, b.U(1)), b.U(lanes/2-1)))
		shift := b.Shl(b.And(position, b.U(1)), b.U(4))
		half := func(d devgen.Value) devgen.Value {
			return b.And(b.Shr(b.Load(kv, b.MulAdd(d, b.U(lanes/2), at)), shift), b.U(0xffff))
		}
		b.For(local, b.U(o.HeadDim/2), b.U(rowSize), func(pair devgen.Value) {
			d := b.Shl(pair, b.U(1))
			b.Store(out, b.Add(to, pair), b.Or(half(d), b.Shl(half(b.Add(d, b.U(1))), b.U(16))))
		})
		b.For(local, b.U(o.valueWords()), b.U(rowSize), func(pair devgen.Value) {
			panel := b.MulAdd(b.Shr(pair, b.U(3)), b.U(arith.BlockPositions), position)
			from := b.Add(values, b.MulAdd(panel, b.U(lanes/2), b.And(pair, b.U(lanes/2-1))))
			b.Store(out, b.Add(to, b.U(o.HeadDim/2), pair), b.Load(kv, from))
		})
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
