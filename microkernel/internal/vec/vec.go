// Package vec drives row operations, the KV cache layout and attention over the functions that
// backends generate (kernel.VectorGenerator, kernel.AttentionGenerator). It knows no instruction
// set. The plain-Go definition of each operation (refX for X) is next to its caller; it is the
// oracle of the generated code and the fallback without it.
//
// The package must not import an emitter (amd64, arm64).
package vec

import (
	"errors"
	"fmt"
	"unsafe"

	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/kernel"
)

// Vec is the set of row operations of one instruction set: everything of a transformer but matrix
// products and attention. Every method computes the same bits on every instruction set; the
// plain-Go function refX defines the method X.
//
// Conventions of all methods: lengths and strides count elements, pointers may have any alignment,
// dst may equal the input of the same shape but must not overlap it otherwise, n = 0 is allowed
// and does nothing, nothing is allocated, and only the stated elements are accessed. Native code
// cannot be preempted: the caller keeps a call below about 200 microseconds (about 10^6 elements
// of work). A Vec is immutable and safe for concurrent use.
type Vec struct {
	isa    kernel.ISA
	native bool
	code   [kernel.VectorOps]jit.Func
}

// Ref returns the plain-Go operations: the oracle of all others, and the fallback without native
// code.
func Ref() *Vec { return &Vec{isa: kernel.Go} }

// New returns the row operations of an instruction set, generated once per process. They are plain
// Go under the race detector, without a generator and without executable memory. The error reports
// that this host cannot run the instruction set.
func New(isa kernel.ISA) (*Vec, error) {
	if !kernel.Host().Supports(isa) {
		return nil, fmt.Errorf("vector kernels: this host cannot run %s (it has %s)", isa, kernel.Host())
	}
	if jit.Race || !isa.Generates() {
		return Ref(), nil
	}
	return vecs.Get(isa)
}

var vecs = jit.NewCache(func(isa kernel.ISA) (*Vec, error) { return buildVec(isa, isa.Target().Vector.Op) })

func buildVec(isa kernel.ISA, generate func(kernel.VectorOp) ([]byte, error)) (*Vec, error) {
	var codes [][]byte
	for op := range kernel.VectorOps {
		code, err := generate(op)
		if err != nil {
			return nil, err
		}
		codes = append(codes, code)
	}
	fs, err := jit.Load(codes...)
	if errors.Is(err, jit.ErrNoExec) {
		return Ref(), nil
	}
	if err != nil {
		return nil, fmt.Errorf("vector kernels: %w", err)
	}
	v := &Vec{isa: isa, native: true}
	copy(v.code[:], fs)
	return v, nil
}

// ISA returns the instruction set of the generated code, or Go.
func (v *Vec) ISA() kernel.ISA                              { return v.isa }
func (v *Vec) call(k kernel.VectorOp, a *kernel.VectorArgs) { v.code[k].Call(unsafe.Pointer(a)) }

// has reports whether an operation has native code.
func (v *Vec) has(k kernel.VectorOp) bool { return v.code[k].Valid() }

// Fields of kernel.VectorArgs.
type (
	pointers = [10]unsafe.Pointer
	lengths  = [6]int
	floats   = [4]float32
)

func ptr[T any](p *T) unsafe.Pointer { return unsafe.Pointer(p) }

// RMSNorm writes dst[i] = x[i] / sqrt(mean(x^2) + eps) * weight[i] for one row of n elements.
// Zhang, Sennrich: Root Mean Square Layer Normalization, 2019.
func (v *Vec) RMSNorm(dst, x, weight *float32, n int, eps float32) {
	v.RMSNormRows(dst, n, x, n, 1, weight, n, eps)
}

// RMSNormRows is RMSNorm for `rows` rows with one weight: a chunk of tokens, or the heads of a
// token (q and k norms).
func (v *Vec) RMSNormRows(dst *float32, dstStride int, x *float32, xStride, rows int, weight *float32, n int,
	eps float32) {
	if !v.native {
		refRMSNormRows(dst, dstStride, x, xStride, rows, weight, n, eps)
		return
	}
	args := kernel.VectorArgs{P: pointers{ptr(dst), ptr(x), ptr(weight)}, N: lengths{dstStride, xStride, rows, n},
		F: floats{eps, float32(n)}}
	v.call(kernel.OpRMSNorm, &args)
}

// LayerNormRows writes dst[i] = (x[i] - mean(x)) / sqrt(var(x) + eps) * weight[i] + bias[i] for
// each of `rows` rows of n elements; the variance is the mean square of the differences. Ba, Kiros,
// Hinton: Layer Normalization, 2016.
func (v *Vec) LayerNormRows(dst *float32, dstStride int, x *float32, xStride, rows int, weight, bias *float32, n int,
	eps float32) {
	if !v.native {
		for r := range rows {
			refLayerNorm(vecOf(at(dst, r*dstStride), n), vecOf(at(x, r*xStride), n), vecOf(weight, n), vecOf(bias, n),
				eps)
		}
		return
	}
	args := kernel.VectorArgs{P: pointers{ptr(dst), ptr(x), ptr(weight), ptr(bias)},
		N: lengths{dstStride, xStride, rows, n}, F: floats{eps, float32(n)}}
	v.call(kernel.OpLayerNorm, &args)
}

// RoPE rotates nHeads vectors of dim elements in place, headStride apart, by the angles of one
// position: cosSin holds dim/2 cosines, then dim/2 sines. neox = false rotates the pairs (2i,
// 2i+1), true the pairs (i, i+dim/2). For a partial rotation dim is smaller than the head. dim is
// even. Su et al.: RoFormer, 2021, section 3.4.2.
func (v *Vec) RoPE(x *float32, dim, nHeads, headStride int, cosSin *float32, neox bool) {
	if !v.native || !neox && dim%lanes != 0 {
		refRoPE(x, dim, nHeads, headStride, cosSin, neox)
		return
	}
	op, length := kernel.OpRoPEPairs, dim
	if neox {
		op, length = kernel.OpRoPEHalves, dim/2
	}
	args := kernel.VectorArgs{P: pointers{ptr(x), ptr(cosSin), ptr(at(cosSin, dim/2))}, N: lengths{length,
		nHeads, headStride}}
	v.call(op, &args)
}

// Add adds a to dst.
func (v *Vec) Add(dst, a *float32, n int) {
	if !v.native {
		refAdd(dst, a, n)
		return
	}
	args := kernel.VectorArgs{P: pointers{ptr(dst), ptr(a)}, N: lengths{n, 1, n}}
	v.call(kernel.OpAdd, &args)
}

// sumPiece is the number of elements of a sum of more than two parts that are computed at a time,
// so that they stay in the first-level cache.
const sumPiece = 1024

// Sum writes dst[i] = ((parts[0][i] + parts[1][i]) + parts[2][i]) + ... of at least one part of n
// elements each. dst may be parts[0], and overlaps no other part.
func (v *Vec) Sum(dst *float32, parts []*float32, n int) {
	if !v.native {
		refSum(dst, parts, n)
		return
	}
	if len(parts) == 1 {
		copy(vecOf(dst, n), vecOf(parts[0], n))
		return
	}
	for i := 0; i < n; i += sumPiece {
		d, m := at(dst, i), min(sumPiece, n-i)
		args := kernel.VectorArgs{P: pointers{ptr(d), ptr(at(parts[0], i)), ptr(at(parts[1], i))}, N: lengths{m}}
		v.call(kernel.OpPlus, &args)
		for _, p := range parts[2:] {
			v.Add(d, at(p, i), m)
		}
	}
}

// AddRows adds n columns of `rows` rows of a to dst: the residual at the end of a slice.
func (v *Vec) AddRows(dst *float32, stride int, a *float32, aStride, rows, n int) {
	if !v.native {
		for r := range rows {
			refAdd(at(dst, r*stride), at(a, r*aStride), n)
		}
		return
	}
	args := kernel.VectorArgs{P: pointers{ptr(dst), ptr(a)}, N: lengths{stride, rows, n, aStride}}
	v.call(kernel.OpAdd, &args)
}

// AddBias adds bias[n] to each of `rows` rows of dst.
func (v *Vec) AddBias(dst *float32, stride, rows int, bias *float32, n int) {
	if !v.native {
		refAddBias(dst, stride, rows, bias, n)
		return
	}
	args := kernel.VectorArgs{P: pointers{ptr(dst), ptr(bias)}, N: lengths{stride, rows, n}}
	v.call(kernel.OpAdd, &args)
}

// AddScaled adds s*a to dst by one fused multiply-add per element, to mix the outputs of experts.
func (v *Vec) AddScaled(dst, a *float32, s float32, n int) {
	if !v.native {
		refAddScaled(dst, a, s, n)
		return
	}
	args := kernel.VectorArgs{P: pointers{ptr(dst), ptr(a)}, N: lengths{n}, F: floats{s}}
	v.call(kernel.OpAddScaled, &args)
}

// Scale multiplies dst by s.
func (v *Vec) Scale(dst *float32, s float32, n int) {
	if !v.native {
		refScale(dst, s, n)
		return
	}
	args := kernel.VectorArgs{P: pointers{ptr(dst)}, N: lengths{n}, F: floats{s}}
	v.call(kernel.OpScale, &args)
}
