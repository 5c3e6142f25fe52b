package kernels

import (
	"fmt"

	"sandwich/microkernel/devgen"
	"sandwich/microkernel/internal/kernel"
)

// Norm describes the RMS norm of rows, their quantization for integer products, or both.
//
// Bindings: x (rows of float32), y (with Add: rows of float32), weight (with Norm: N float32), out
// (with Float: rows of float32), quantized (with an integer Path: rows of quantized activations).
// out may be x. With an integer Path strides are multiples of four. Push words: n, x_stride,
// y_stride (with Add), out_stride, quantized_stride, eps (float32).
type Norm struct {
	Add   bool           // first add y to x
	Norm  bool           // false: the rows are quantized as they are
	Float bool           // write the normalized rows as float32
	Path  kernel.Compute // quantize them for this path, unless it is f32
	Words int            // words of four elements of an invocation at a time: 1, 2 or 4
}

const (
	normSize = 256 // invocations of a workgroup
	word4    = 4   // elements of a word of quantized activations
)

// For returns the kernel for rows of n elements. It has many loads in flight in long rows, and
// several workgroups for one that is only quantized.
func (o Norm) For(n int) Norm {
	o.Words = 1
	most := 4
	if !o.Norm {
		most = 2
	}
	for o.Words < most && n > o.tile() {
		o.Words *= 2
	}
	return o
}

// tile returns the elements of a workgroup at a time.
func (o Norm) tile() int { return normSize * word4 * o.Words }

// Grid returns the workgroups for rows of n elements.
func (o Norm) Grid(n, rows int) [3]int {
	if o.Norm {
		return [3]int{rows, 1, 1}
	}
	return [3]int{rows, ceil(n, o.tile()), 1}
}

// Kernel builds the kernel.
func (o Norm) Kernel() (*devgen.Kernel, error) {
	quantizes := o.Path.Quantizes()
	switch {
	case !quantizes && o.Path != kernel.ComputeF32:
		return nil, fmt.Errorf("device norm: no quantization for path %s", o.Path)
	case !o.Float && !quantizes:
		return nil, fmt.Errorf("device norm: the kernel has no output; set Float or an integer Path")
	case !o.Norm && (o.Float || o.Add):
		return nil, fmt.Errorf("device norm: Float or Add without Norm would copy or add rows only")
	case o.Words != 1 && o.Words != 2 && o.Words != 4:
		return nil, fmt.Errorf("device norm: %d words of an invocation at a time; use 1, 2 or 4", o.Words)
	}
	name := "quantize"
	if o.Norm {
		name = "norm"
	}
	if o.Add {
		name = "add_" + name
	}
	if o.Float {
		name += "_float"
	}
	name = identifier(fmt.Sprintf("%s_%s_x%d", name, o.Path, o.Words))
	k := normKernel{Builder: devgen.NewBuilder(name, normSize), o: o, quantizes: quantizes}
	k.declare()
	if o.Norm {
		k.reduce()
	}
	if quantizes {
		k.quantize()
	} else {
		k.write()
	}
	return k.Build()
}

// normKernel is a Norm in construction. An invocation reads and writes the same elements of x in
// all parts of the kernel, so that it need not see writes of others.
type normKernel struct {
	*devgen.Builder
	o                                      Norm
	quantizes                              bool
	x, y, weight, out, quantized           devgen.Buffer
	n, xStride, outStride, quantizedStride devgen.Value
	yStride, eps                           devgen.Value
	local, row, at                         devgen.Value // at: first word of the row of x
	scale                                  devgen.Value
}

func (k *normKernel) declare() {
	access := devgen.Read
	if k.o.Add {
		access = devgen.ReadWrite
	}
	k.x = k.Binding("x", access)
	if k.o.Add {
		k.y = k.Binding("y", devgen.Read)
	}
	if k.o.Norm {
		k.weight = k.Binding("weight", devgen.Read)
	}
	if k.o.Float {
		k.out = k.Binding("out", devgen.Write)
	}
	if k.quantizes {
		k.quantized = k.Binding("quantized", devgen.Write)
	}
	k.n, k.xStride = k.Push("n", devgen.U32), k.Push("x_stride", devgen.U32)
	if k.o.Add {
		k.yStride = k.Push("y_stride", devgen.U32)
	}
	k.outStride, k.quantizedStride = k.Push("out_stride", devgen.U32), k.Push("quantized_stride", devgen.U32)
	k.eps = k.Push("eps", devgen.F32)
	k.local, k.row = k.Builtin(devgen.LocalIndex), k.Builtin(devgen.GroupX)
	k.at = k.Mul(k.row, k.xStride)
}

// place returns the place in a tile of element j of word w of this invocation: the elements of a
// word follow each other if the rows are quantized.
func (k *normKernel) place(w, j int) devgen.Value {
	if k.quantizes {
		return k.Add(k.Mul(k.local, k.U(word4)), k.U(normSize*word4*w+j))
	}
	return k.Add(k.local, k.U(normSize*(word4*w+j)))
}

// padded returns the word of a shared array that holds an element of a tile. Elements that
// invocations access at the same time are in distinct banks.
func (k *normKernel) padded(i devgen.Value) devgen.Value { return k.Add(i, k.Shr(i, k.U(5))) }

// reduce adds y to x and computes the factor of the row: sixteen invocations add one lane each.
func (k *normKernel) reduce() {
	size := k.o.tile()
	tile, partial := k.Shared("tile", size+size/32), k.Shared("partial", lanes)
	sum := k.Var(k.F(0))
	k.For(k.U(0), k.n, k.U(size), func(first devgen.Value) {
		k.addTile(tile, first)
		k.If(k.Less(k.local, k.U(lanes)), func() {
			k.addSquares(tile, k.Min(k.Sub(k.n, first), k.U(size)), sum)
		})
		k.Barrier()
	})
	k.If(k.Less(k.local, k.U(lanes)), func() { k.StoreShared(partial, k.local, k.Get(sum)) })
	k.Barrier()
	k.scale = rmsScale(k.Builder, tree(k.Builder, partial, k.U(0), k.FAdd), k.n, k.eps)
}

// tileWord is four elements of a tile.
type tileWord struct {
	places, i [word4]devgen.Value // in the tile and in the row
	x         [word4]devgen.Value
}

// addTile writes a tile of x, or of x + y, to shared memory, and of x + y to x.
func (k *normKernel) addTile(tile devgen.Array, first devgen.Value) {
	list := make([]tileWord, k.o.Words)
	for w := range list {
		e := &list[w]
		for j := range e.i {
			e.places[j] = k.place(w, j)
			e.i[j] = k.Add(first, e.places[j])
		}
		e.x = k.load(k.x, k.at, e)
	}
	if k.o.Add {
		from := k.Mul(k.row, k.yStride)
		for w := range list {
			e := &list[w]
			for j, y := range k.load(k.y, from, e) {
				e.x[j] = k.FAdd(e.x[j], y)
			}
		}
	}
	for _, e := range list {
		for j, x := range e.x {
			k.StoreShared(tile, k.padded(e.places[j]), x)
		}
	}
	k.Barrier() // an invocation whose elements lie beyond the row has read the last ones
	if k.o.Add {
		for w := range list {
			k.storeSum(&list[w])
		}
	}
}

// load returns the elements of a row that begins at word `at`, or the last ones.
func (k *normKernel) load(from devgen.Buffer, at devgen.Value, e *tileWord) (x [word4]devgen.Value) {
	if k.quantizes {
		return k.LoadF4(from, k.Add(at, k.Min(e.i[0], k.Sub(k.n, k.U(word4)))))
	}
	for j, i := range e.i {
		x[j] = k.LoadF(from, k.Add(at, k.Min(i, k.Sub(k.n, k.U(1)))))
	}
	return x
}

// storeSum writes the elements that the row has to x.
func (k *normKernel) storeSum(e *tileWord) {
	if k.quantizes {
		k.If(k.Less(e.i[0], k.n), func() { k.Store4(k.x, k.Add(k.at, e.i[0]), e.x) })
		return
	}
	for j, i := range e.i {
		k.If(k.Less(i, k.n), func() { k.Store(k.x, k.Add(k.at, i), e.x[j]) })
	}
}

// addSquares adds the squares of this invocation's lane of the first n elements of a tile to sum.
func (k *normKernel) addSquares(tile devgen.Array, n devgen.Value, sum devgen.Var) {
	const together = 16 // loads
	square := func(i devgen.Value) {
		e := k.LoadSharedF(tile, k.padded(i))
		k.Set(sum, k.FMA(e, e, k.Get(sum)))
	}
	whole := k.Mul(k.Div(n, k.U(lanes*together)), k.U(lanes*together))
	k.For(k.local, whole, k.U(lanes*together), func(i devgen.Value) {
		for j := range together {
			square(k.Add(i, k.U(lanes*j)))
		}
	})
	k.For(k.Add(whole, k.local), n, k.U(lanes), square)
}

// element returns element i of the normalized row.
func (k *normKernel) element(i devgen.Value) devgen.Value {
	e := k.LoadF(k.x, k.Add(k.at, i))
	if !k.o.Norm {
		return e
	}
	return k.FMul(k.FMul(e, k.scale), k.LoadF(k.weight, i))
}

// elements4 returns four elements of the normalized row from element i on.
func (k *normKernel) elements4(i devgen.Value) [word4]devgen.Value {
	x := k.LoadF4(k.x, k.Add(k.at, i))
	if !k.o.Norm {
		return x
	}
	for j, weight := range k.LoadF4(k.weight, i) {
		x[j] = k.FMul(k.FMul(x[j], k.scale), weight)
	}
	return x
}

// write writes the normalized row.
func (k *normKernel) write() {
	const together = 4 // loads
	to := k.Mul(k.row, k.outStride)
	whole := k.Mul(k.Div(k.n, k.U(normSize*together)), k.U(normSize*together))
	k.For(k.local, whole, k.U(normSize*together), func(first devgen.Value) {
		var list [together]devgen.Value
		for j := range list {
			list[j] = k.element(k.Add(first, k.U(normSize*j)))
		}
		for j, x := range list {
			k.Store(k.out, k.Add(to, first, k.U(normSize*j)), x)
		}
	})
	k.For(k.Add(whole, k.local), k.n, k.U(normSize), func(i devgen.Value) {
		k.Store(k.out, k.Add(to, i), k.element(i))
	})
}
