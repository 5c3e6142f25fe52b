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
// quantized too. Push words: rows,
// n, x_stride, out_stride, quantized_stride, eps (float32).
type Norm struct {
	Norm  bool           // false: the rows are quantized as they are
	Float bool           // write the normalized rows as float32
	Path  kernel.Compute // quantize them for this path, unless it is f32
}

// normRows is the number of rows of a workgroup: sixteen invocations compute one.
const normRows = 4

// Grid returns the workgroups for a number of rows.
func (o Norm) Grid(rows int) [3]int { return [3]int{ceil(rows, normRows), 1, 1} }

// Kernel builds the kernel.
func (o Norm) Kernel() (*devgen.Kernel, error) {
	quantizes := o.Path == kernel.ComputeInt8 || o.Path == kernel.ComputeInt8Superblock
	switch {
	case !quantizes && o.Path != kernel.ComputeF32:
		return nil, fmt.Errorf("device norm: no quantization for path %s", o.Path)
	case !o.Float && !quantizes || o.Float && !o.Norm:
		return nil, fmt.Errorf("device norm: %+v computes nothing", o)
	}
	name := "quantize"
	if o.Norm {
		name = "norm"
	}
	if o.Float {
		name += "_float"
	}
	k := normKernel{Builder: devgen.NewBuilder(identifier(name+"_"+o.Path.String()), normRows*lanes), o: o}
	k.build(quantizes)
	return k.Build()
}

// normKernel is a Norm in construction.
type normKernel struct {
	*devgen.Builder
	o                                    Norm
	x, weight, out, quantized            devgen.Buffer
	n, xStride, outStride, quantizedRows devgen.Value
	row, lane, at                        devgen.Value // at: first word of the row of x
	scale                                devgen.Value
}

func (k *normKernel) build(quantizes bool) {
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
	rows := k.Push("rows", devgen.U32)
	k.n, k.xStride = k.Push("n", devgen.U32), k.Push("x_stride", devgen.U32)
	k.outStride, k.quantizedRows = k.Push("out_stride", devgen.U32), k.Push("quantized_stride", devgen.U32)
	eps := k.Push("eps", devgen.F32)

	local := k.Builtin(devgen.LocalIndex)
	k.lane = k.And(local, k.U(lanes-1))
	k.row = k.MulAdd(k.Builtin(devgen.GroupX), k.U(normRows), k.Shr(local, k.U(4)))
	k.at = k.Mul(k.Min(k.row, k.Sub(rows, k.U(1))), k.xStride)
	if k.o.Norm {
		k.scale = k.reduce(local, eps)
	}
	k.If(k.Less(k.row, rows), func() {
		if quantizes {
			k.quantize()
		}
		if k.o.Float {
			k.write()
		}
	})
}

// reduce returns the factor of the row.
func (k *normKernel) reduce(local, eps devgen.Value) devgen.Value {
	partial := k.Shared("partial", normRows*lanes)
	sum := k.Var(k.F(0))
	k.For(k.lane, k.n, k.U(lanes), func(i devgen.Value) {
		e := k.LoadF(k.x, k.Add(k.at, i))
		k.Set(sum, k.FMA(e, e, k.Get(sum)))
	})
	k.StoreShared(partial, local, k.Get(sum))
	k.Barrier()
	return rmsScale(k.Builder, tree(k.Builder, partial, k.Sub(local, k.lane), k.FAdd), k.n, eps)
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
	k.For(k.lane, k.n, k.U(lanes), func(i devgen.Value) { k.Store(k.out, k.Add(to, i), k.element(i)) })
}

// quantize writes the blocks that share a scale, one invocation each.
func (k *normKernel) quantize() {
	size := kernel.ActQ8Block
	if k.o.Path == kernel.ComputeInt8Superblock {
		size = kernel.ActQ8Group
	}
	k.For(k.lane, k.Div(k.n, k.U(size)), k.U(lanes), func(block devgen.Value) {
		first := k.Mul(block, k.U(size))
		scale, factor, valid := k.scales(first, size)
		k.Range(k.U(size/kernel.ActQ8Block), func(i devgen.Value) {
			to := k.MulAdd(k.Add(k.Div(first, k.U(kernel.ActQ8Block)), i), k.U(kernel.ActQ8Bytes/b32),
				k.Mul(k.row, k.quantizedRows))
			k.block(k.MulAdd(i, k.U(kernel.ActQ8Block), first), to, scale, factor, valid)
		})
	})
}

// scales returns the scale of a block, the factor of its values, and whether it is not all zeros.
func (k *normKernel) scales(first devgen.Value, size int) (scale, factor, valid devgen.Value) {
	top := k.Var(k.U(0)) // magnitudes compare as integers, with NaN on top
	k.Range(k.U(size), func(i devgen.Value) {
		k.Set(top, k.Max(k.Get(top), k.And(k.Bits(k.element(k.Add(first, i))), k.U(arith.SignBit-1))))
	})
	bits := k.Get(top)
	finite := k.Less(bits, k.U(arith.InfBits))
	valid = k.AndBool(finite, k.Not(k.Less(bits, k.U(arith.TinyQ8Bits))))
	amax := k.Float(k.Select(valid, bits, k.Bits(k.F(1))))
	scale = k.Bits(k.FDiv(amax, k.F(127)))
	scale = k.Select(valid, scale, k.Select(finite, k.U(0), k.U(arith.NaNBits)))
	return k.Float(scale), k.FDiv(k.F(127), amax), valid
}

// block writes a block of 32 quantized activations.
func (k *normKernel) block(first, to, scale, factor, valid devgen.Value) {
	store := func(offset int, x devgen.Value) { k.Store(k.quantized, k.Add(to, k.U(offset/b32)), x) }
	half := [2]devgen.Value{}
	for h := range half {
		sum := k.Var(k.U(0))
		k.Range(k.U(4), func(i devgen.Value) {
			g := k.Add(i, k.U(4*h))
			word := k.U(0)
			for j := range 4 {
				e := k.FMul(k.element(k.Add(first, k.Shl(g, k.U(2)), k.U(j))), factor)
				q := k.Select(valid, k.RoundToInt(e), k.U(0))
				k.Set(sum, k.Add(k.Get(sum), q))
				word = k.Or(word, k.Shl(k.And(q, k.U(0xff)), k.U(8*j)))
			}
			k.Store(k.quantized, k.Add(to, k.U(kernel.ActQ/b32), g), word)
		})
		half[h] = k.Get(sum)
	}
	sum := k.Add(half[0], half[1])
	float := k.FromInt(sum)
	if k.o.Path == kernel.ComputeInt8 {
		float = k.FMul(float, scale)
	}
	store(kernel.ActScale, scale)
	store(kernel.ActBias, k.Mul(sum, k.U(-128)))
	store(kernel.ActHalfSums, k.Or(k.And(half[0], k.U(0xffff)), k.Shl(half[1], k.U(16))))
	store(kernel.ActSum, float)
}
