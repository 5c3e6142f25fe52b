package kernels

import (
	"sandwich/microkernel/devgen"
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/kernel"
)

// blockWords is the number of words of a block of 32 quantized activations. As many invocations
// quantize it.
const blockWords = kernel.ActQ8Block / word4

// quantizer quantizes tiles of rows.
type quantizer struct {
	*normKernel
	tops       devgen.Array // [words][normSize] largest magnitudes of words
	blockTops  devgen.Array // [words][normSize/blockWords] those of blocks
	sums       devgen.Array // [words][normSize] sums of words
	block      devgen.Value // first invocation that quantizes the block of this one
	first      devgen.Value // whether it is this one
	superblock bool         // 256 elements have one scale
}

// quantize quantizes the row, or a tile of it, and writes it as float32 too.
func (k *normKernel) quantize() {
	q := quantizer{normKernel: k, superblock: k.o.Path != kernel.ComputeInt8}
	words := k.o.Words
	q.tops, q.sums = k.Shared("tops", words*normSize), k.Shared("sums", words*normSize)
	if q.superblock {
		q.blockTops = k.Shared("block_tops", words*normSize/blockWords)
	}
	q.block = k.And(k.local, k.U(-blockWords))
	q.first = k.Equal(k.local, q.block)
	if k.o.Norm {
		k.For(k.U(0), k.n, k.U(k.o.tile()), q.tile)
		return
	}
	q.tile(k.Mul(k.Builtin(devgen.GroupY), k.U(k.o.tile())))
}

// quantizedWord is four quantized activations.
type quantizedWord struct {
	x              [word4]devgen.Value
	i              devgen.Value // the first element
	inside         devgen.Value // whether the row has it
	word, sum, top devgen.Value // top: bits of the largest magnitude
	scale          devgen.Value // bits of the scale of its block
}

// tile quantizes the tile that begins at element `from`.
func (q *quantizer) tile(from devgen.Value) {
	list := make([]quantizedWord, q.o.Words)
	for w := range list {
		e := &list[w]
		e.i = q.Add(from, q.place(w, 0))
		e.inside = q.Less(e.i, q.n)
		e.x = q.elements4(q.Min(e.i, q.Sub(q.n, q.U(word4))))
	}
	for w := range list { // magnitudes compare as integers, with NaN on top
		top := q.U(0)
		for _, x := range list[w].x {
			top = q.Max(top, q.And(q.Bits(x), q.U(arith.SignBit-1)))
		}
		q.StoreShared(q.tops, q.Add(q.local, q.U(normSize*w)), top)
	}
	q.Barrier()
	q.shareTops(list)
	for w := range list {
		list[w].quantize(q.Builder)
		q.StoreShared(q.sums, q.Add(q.local, q.U(normSize*w)), list[w].sum)
	}
	q.Barrier()
	for w := range list {
		q.If(list[w].inside, func() {
			q.writeFloats(&list[w])
			q.writeWord(&list[w])
			q.If(q.first, func() { q.writeBlock(w, &list[w]) })
		})
	}
}

// shareTops sets the largest magnitudes of those that share a scale.
func (q *quantizer) shareTops(list []quantizedWord) {
	largest := func(from devgen.Array, first devgen.Value, n int) devgen.Value {
		top := q.U(0)
		for i := range n {
			top = q.Max(top, q.LoadShared(from, q.Add(first, q.U(i))))
		}
		return top
	}
	for w := range list {
		list[w].top = largest(q.tops, q.Add(q.block, q.U(normSize*w)), blockWords)
	}
	if !q.superblock {
		return
	}
	const blocks = normSize / blockWords
	block := q.Div(q.local, q.U(blockWords))
	q.If(q.first, func() {
		for w := range list {
			q.StoreShared(q.blockTops, q.Add(block, q.U(blocks*w)), list[w].top)
		}
	})
	q.Barrier()
	for w := range list {
		list[w].top = largest(q.blockTops, q.Add(q.And(block, q.U(-superblockBlocks)), q.U(blocks*w)), superblockBlocks)
	}
}

// quantize quantizes the word by its top.
func (e *quantizedWord) quantize(k *devgen.Builder) {
	finite := k.Less(e.top, k.U(arith.InfBits))
	valid := k.AndBool(finite, k.Not(k.Less(e.top, k.U(arith.TinyQ8Bits))))
	amax := k.Float(k.Select(valid, e.top, k.Bits(k.F(1))))
	factor := k.FDiv(k.F(127), amax)
	e.scale = k.Select(valid, k.Bits(k.FDiv(amax, k.F(127))), k.Select(finite, k.U(0), k.U(arith.NaNBits)))
	e.word, e.sum = k.U(0), k.U(0)
	for j, x := range e.x {
		n := k.Select(valid, k.RoundToInt(k.FMul(x, factor)), k.U(0))
		e.sum = k.Add(e.sum, n)
		e.word = k.Or(e.word, k.Shl(k.And(n, k.U(0xff)), k.U(8*j)))
	}
}

func (q *quantizer) writeFloats(e *quantizedWord) {
	if !q.o.Float {
		return
	}
	q.Store4(q.out, q.MulAdd(q.row, q.outStride, e.i), e.x)
}

// blockOf returns the first word of the block, or of the superblock, of an element in the quantized
// rows, and the number of the block in it.
func (q *quantizer) blockOf(i devgen.Value) (at, block devgen.Value) {
	row, block := q.Mul(q.row, q.quantizedStride), q.Div(i, q.U(kernel.ActQ8Block))
	if q.o.Path != kernel.ComputeInt8K {
		return q.MulAdd(block, q.U(kernel.ActQ8Bytes/b32), row), q.U(0)
	}
	at = q.MulAdd(q.Div(block, q.U(superblockBlocks)), q.U(superblockWords), row)
	return at, q.Rem(block, q.U(superblockBlocks))
}

func (q *quantizer) writeWord(e *quantizedWord) {
	at, block := q.blockOf(e.i)
	if q.o.Path != kernel.ComputeInt8K {
		at = q.Add(at, q.U(kernel.ActQ/b32))
	}
	word := q.MulAdd(block, q.U(blockWords), q.Sub(q.local, q.block))
	q.Store(q.quantized, q.Add(at, word), e.word)
}

// halfSums returns the sums of the halves of a block, or of one that follows it.
func (q *quantizer) halfSums(w, next int) (half [2]devgen.Value) {
	for h := range half {
		half[h] = q.U(0)
		for i := range blockWords / 2 {
			at := q.U(normSize*w + blockWords*next + blockWords/2*h + i)
			half[h] = q.Add(half[h], q.LoadShared(q.sums, q.Add(q.local, at)))
		}
	}
	return half
}

// writeBlock writes what a block has in addition to its words.
func (q *quantizer) writeBlock(w int, e *quantizedWord) {
	at, block := q.blockOf(e.i)
	half := q.halfSums(w, 0)
	store := func(offset int, x devgen.Value) { q.Store(q.quantized, q.Add(at, q.U(offset/b32)), x) }
	if q.o.Path != kernel.ComputeInt8K {
		sum := q.Add(half[0], half[1])
		float := q.FromInt(sum)
		if q.o.Path == kernel.ComputeInt8 {
			float = q.FMul(float, q.Float(e.scale))
		}
		store(kernel.ActScale, e.scale)
		store(kernel.ActBias, q.Mul(sum, q.U(-128)))
		store(kernel.ActHalfSums, pairOf(q.Builder, half[0], half[1]))
		store(kernel.ActSum, float)
		return
	}
	q.Store(q.quantized, q.Add(at, block, q.U(superblockHalves)), pairOf(q.Builder, half[0], half[1]))
	q.If(q.Equal(q.And(block, q.U(1)), q.U(0)), func() {
		next := q.halfSums(w, 1)
		pair := pairOf(q.Builder, q.Add(half[0], half[1]), q.Add(next[0], next[1]))
		q.Store(q.quantized, q.Add(at, q.Shr(block, q.U(1)), q.U(kernel.ActKSums/b32)), pair)
	})
	q.If(q.Equal(block, q.U(0)), func() {
		q.Store(q.quantized, q.Add(at, q.U(superblockScale)), e.scale)
		for i := superblockScale + 1; i < superblockWords; i++ {
			q.Store(q.quantized, q.Add(at, q.U(i)), q.U(0))
		}
	})
}

// pairOf returns the low halves of two words as one word.
func pairOf(b *devgen.Builder, first, second devgen.Value) devgen.Value {
	return b.Or(b.And(first, b.U(0xffff)), b.Shl(second, b.U(16)))
}
