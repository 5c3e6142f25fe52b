package kernels

import (
	"fmt"

	"sandwich/microkernel/devgen"
	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/kernel"
)

// Norm describes the RMS norm of rows, their quantization for integer products, or both.
//
// Bindings: x (rows of float32), weight (with Norm: N float32), out (with Float: rows of float32),
// quantized (with an integer Path: rows of quantized activations). out may be x if the rows are not
// quantized too. Push words: n, x_stride, out_stride, quantized_stride, eps (float32).
type Norm struct {
	Norm  bool           // false: the rows are quantized as they are
	Float bool           // write the normalized rows as float32
	Path  kernel.Compute // quantize them for this path, unless it is f32
}

// normSize is the number of invocations of a row.
const normSize = 64

// Grid returns the workgroups for a number of rows.
func (o Norm) Grid(rows int) [3]int { return [3]int{rows, 1, 1} }

// Kernel builds the kernel.
func (o Norm) Kernel() (*devgen.Kernel, error) {
	quantizes := o.Path.Quantizes()
	switch {
	case !quantizes && o.Path != kernel.ComputeF32:
		return nil, fmt.Errorf("device norm: no quantization for path %s", o.Path)
	case !o.Float && !quantizes:
		return nil, fmt.Errorf("device norm: the kernel has no output; set Float or an integer Path")
	case o.Float && !o.Norm:
		return nil, fmt.Errorf("device norm: Float without Norm would copy the rows")
	}
	name := "quantize"
	if o.Norm {
		name = "norm"
	}
	if o.Float {
		name += "_float"
	}
	k := normKernel{Builder: devgen.NewBuilder(identifier(name+"_"+o.Path.String()), normSize), o: o}
	k.declare(quantizes)
	if o.Norm {
		k.reduce()
	}
	if o.Float {
		k.write()
	}
	if quantizes {
		k.quantize()
	}
	return k.Build()
}

// normKernel is a Norm in construction.
type normKernel struct {
	*devgen.Builder
	o                                      Norm
	x, weight, out, quantized              devgen.Buffer
	n, xStride, outStride, quantizedStride devgen.Value
	eps                                    devgen.Value
	local, row, at                         devgen.Value // at: first word of the row of x
	scale                                  devgen.Value
}

func (k *normKernel) declare(quantizes bool) {
	k.x = k.Binding("x", devgen.Read)
	if k.o.Norm {
		k.weight = k.Binding("weight", devgen.Read)
	}
	if k.o.Float {
		k.out = k.Binding("out", devgen.Write)
	}
	if quantizes {
		k.quantized = k.Binding("quantized", devgen.Write)
	}
	k.n, k.xStride = k.Push("n", devgen.U32), k.Push("x_stride", devgen.U32)
	k.outStride, k.quantizedStride = k.Push("out_stride", devgen.U32), k.Push("quantized_stride", devgen.U32)
	k.eps = k.Push("eps", devgen.F32)
	k.local, k.row = k.Builtin(devgen.LocalIndex), k.Builtin(devgen.GroupX)
	k.at = k.Mul(k.row, k.xStride)
}

// reduce computes the factor of the row: sixteen invocations add one lane each.
func (k *normKernel) reduce() {
	const together = 8 // loads
	partial := k.Shared("partial", lanes)
	k.If(k.Less(k.local, k.U(lanes)), func() {
		sum := k.Var(k.F(0))
		square := func(i devgen.Value) {
			e := k.LoadF(k.x, k.Add(k.at, i))
			k.Set(sum, k.FMA(e, e, k.Get(sum)))
		}
		whole := k.Mul(k.Div(k.n, k.U(lanes*together)), k.U(lanes*together))
		k.For(k.local, whole, k.U(lanes*together), func(i devgen.Value) {
			for j := range together {
				square(k.Add(i, k.U(lanes*j)))
			}
		})
		k.For(k.Add(whole, k.local), k.n, k.U(lanes), square)
		k.StoreShared(partial, k.local, k.Get(sum))
	})
	k.Barrier()
	k.scale = rmsScale(k.Builder, tree(k.Builder, partial, k.U(0), k.FAdd), k.n, k.eps)
}

// element returns element i of the normalized row.
func (k *normKernel) element(i devgen.Value) devgen.Value {
	e := k.LoadF(k.x, k.Add(k.at, i))
	if !k.o.Norm {
		return e
	}
	return k.FMul(k.FMul(e, k.scale), k.LoadF(k.weight, i))
}

func (k *normKernel) write() {
	to := k.Mul(k.row, k.outStride)
	k.For(k.local, k.n, k.U(normSize), func(i devgen.Value) { k.Store(k.out, k.Add(to, i), k.element(i)) })
}

// quantize quantizes the row, a block of 32 per invocation.
func (k *normKernel) quantize() {
	blocks := k.Div(k.n, k.U(kernel.ActQ8Block))
	var tops, sums devgen.Array
	if k.o.Path != kernel.ComputeInt8 {
		tops = k.Shared("tops", normSize)
	}
	if k.o.Path == kernel.ComputeInt8K {
		sums = k.Shared("sums", normSize)
	}
	k.For(k.U(0), blocks, k.U(normSize), func(first devgen.Value) {
		mine := k.Add(first, k.local)
		block := k.Min(mine, k.Sub(blocks, k.U(1)))
		var x [kernel.ActQ8Block]devgen.Value
		top := k.U(0) // magnitudes compare as integers, with NaN on top
		for i := range x {
			x[i] = k.element(k.Add(k.Mul(block, k.U(kernel.ActQ8Block)), k.U(i)))
			top = k.Max(top, k.And(k.Bits(x[i]), k.U(arith.SignBit-1)))
		}
		if k.o.Path != kernel.ComputeInt8 {
			top = k.shareTop(tops, top)
		}
		if k.o.Path == kernel.ComputeInt8K {
			q := k.integers(&x, top)
			sum := k.sumOfPair(sums, k.Add(q.half[0], q.half[1]))
			k.If(k.Less(mine, blocks), func() { k.storeInteger(block, &q, sum) })
			return
		}
		k.If(k.Less(mine, blocks), func() {
			q := k.integers(&x, top)
			k.store(block, &q)
		})
	})
}

// shareTop returns the largest magnitude of the superblock of this invocation's block.
func (k *normKernel) shareTop(tops devgen.Array, top devgen.Value) devgen.Value {
	k.StoreShared(tops, k.local, top)
	k.Barrier()
	first := k.And(k.local, k.U(-superblockBlocks))
	top = k.U(0)
	for i := range superblockBlocks {
		top = k.Max(top, k.LoadShared(tops, k.Add(first, k.U(i))))
	}
	k.Barrier()
	return top
}

// sumOfPair returns the sums of this invocation's block and of the next one, as halves of a word. A
// barrier must follow before the next call.
func (k *normKernel) sumOfPair(sums devgen.Array, sum devgen.Value) devgen.Value {
	k.StoreShared(sums, k.local, sum)
	k.Barrier()
	next := k.LoadShared(sums, k.Xor(k.local, k.U(1)))
	return pairOf(k.Builder, sum, next)
}

// pairOf returns the low halves of two words as one word.
func pairOf(b *devgen.Builder, first, second devgen.Value) devgen.Value {
	return b.Or(b.And(first, b.U(0xffff)), b.Shl(second, b.U(16)))
}

// quantizedBlock is a block of 32 quantized activations.
type quantizedBlock struct {
	words [kernel.ActQ8Block / 4]devgen.Value
	half  [2]devgen.Value // sums of its halves
	scale devgen.Value    // bits of the scale
}

// integers quantizes a block, given the largest magnitude of those that share its scale.
func (k *normKernel) integers(x *[kernel.ActQ8Block]devgen.Value, top devgen.Value) (q quantizedBlock) {
	finite := k.Less(top, k.U(arith.InfBits))
	valid := k.AndBool(finite, k.Not(k.Less(top, k.U(arith.TinyQ8Bits))))
	amax := k.Float(k.Select(valid, top, k.Bits(k.F(1))))
	factor := k.FDiv(k.F(127), amax)
	q.scale = k.Select(valid, k.Bits(k.FDiv(amax, k.F(127))), k.Select(finite, k.U(0), k.U(arith.NaNBits)))
	q.half = [2]devgen.Value{k.U(0), k.U(0)}
	for g := range q.words {
		word := k.U(0)
		for j := range 4 {
			n := k.Select(valid, k.RoundToInt(k.FMul(x[4*g+j], factor)), k.U(0))
			q.half[g/4] = k.Add(q.half[g/4], n)
			word = k.Or(word, k.Shl(k.And(n, k.U(0xff)), k.U(8*j)))
		}
		q.words[g] = word
	}
	return q
}

// store writes a block of 32 quantized activations.
func (k *normKernel) store(block devgen.Value, q *quantizedBlock) {
	to := k.MulAdd(block, k.U(kernel.ActQ8Bytes/b32), k.Mul(k.row, k.quantizedStride))
	store := func(offset int, x devgen.Value) { k.Store(k.quantized, k.Add(to, k.U(offset/b32)), x) }
	for g, word := range q.words {
		store(kernel.ActQ+4*g, word)
	}
	sum := k.Add(q.half[0], q.half[1])
	float := k.FromInt(sum)
	if k.o.Path == kernel.ComputeInt8 {
		float = k.FMul(float, k.Float(q.scale))
	}
	store(kernel.ActScale, q.scale)
	store(kernel.ActBias, k.Mul(sum, k.U(-128)))
	store(kernel.ActHalfSums, pairOf(k.Builder, q.half[0], q.half[1]))
	store(kernel.ActSum, float)
}

// storeInteger writes a block of a superblock of path int8-k. pair has the sums of this block and
// of the next one, which every other block writes. The first block writes the scale.
func (k *normKernel) storeInteger(block devgen.Value, q *quantizedBlock, pair devgen.Value) {
	superblock, in := k.Div(block, k.U(superblockBlocks)), k.Rem(block, k.U(superblockBlocks))
	to := k.MulAdd(superblock, k.U(superblockWords), k.Mul(k.row, k.quantizedStride))
	words := k.MulAdd(in, k.U(len(q.words)), to)
	for g, word := range q.words {
		k.Store(k.quantized, k.Add(words, k.U(g)), word)
	}
	k.Store(k.quantized, k.Add(to, in, k.U(superblockHalves)), pairOf(k.Builder, q.half[0], q.half[1]))
	k.If(k.Equal(k.And(in, k.U(1)), k.U(0)), func() {
		k.Store(k.quantized, k.Add(to, k.Shr(in, k.U(1)), k.U(kernel.ActKSums/b32)), pair)
	})
	k.If(k.Equal(in, k.U(0)), func() {
		k.Store(k.quantized, k.Add(to, k.U(superblockScale)), q.scale)
		for i := superblockScale + 1; i < superblockWords; i++ {
			k.Store(k.quantized, k.Add(to, k.U(i)), k.U(0))
		}
	})
}
