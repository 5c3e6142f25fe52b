package kernels

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/microkernel/devgen/weights"
	"sandwich/microkernel/qtype"
)

// integerTypes returns the weight types that device kernels multiply by path int8-k.
func integerTypes() (list []qtype.Type) {
	for _, typ := range qtype.All() {
		if weights.Supports(typ, microkernel.ComputeInt8K) == nil {
			list = append(list, typ)
		}
	}
	return list
}

// TestIntegerProducts checks that every product by path int8-k has the bits of plain Go, for
// weights of every type and odd shapes.
func TestIntegerProducts(t *testing.T) {
	const path = microkernel.ComputeInt8K
	for i, typ := range integerTypes() {
		t.Run(typ.String(), func(t *testing.T) {
			r := rand.New(rand.NewPCG(48, uint64(typ)))
			products := []Product{
				GEMM{Weight: typ, Path: path, Rows: 3, Panels: 2}, RowGEMM{Weight: typ, Path: path, Rows: 2},
				TensorGEMM{Weight: typ, Path: path, Rows: 16},
			}
			switch typ {
			case qtype.Q4_K, qtype.Q6_K: // with and without offsets, by 32 and 16 k
				products = append(products,
					GEMM{Weight: typ, Path: path, Epilogue: Gated, Rows: 2},
					GEMM{Weight: typ, Path: path, Bias: true, Rows: 1},
					RowGEMM{Weight: typ, Path: path, Epilogue: Gated, Unit: GeGLU, Rows: 1},
					RowGEMM{Weight: typ, Path: path, Epilogue: Add, Bias: true, Rows: 4},
					TensorGEMM{Weight: typ, Path: path, Epilogue: Gated, Rows: 32},
					TensorGEMM{Weight: typ, Path: path, Epilogue: Add, Bias: true, Rows: 48},
				)
			case qtype.Q2_K, qtype.IQ4_XS:
			default: // reading the weights is all that differs
				products = products[i%3 : i%3+1]
			}
			for j, product := range products {
				checkInteger(t, r, product, 1+r.IntN(5), 1+r.IntN(40), 256*(1+j%3))
			}
		})
	}
}

// checkInteger runs a product of a shape with random operands.
func checkInteger(t *testing.T, r *rand.Rand, product Product, m, n, k int) {
	t.Helper()
	var g GEMM
	switch p := product.(type) {
	case GEMM:
		g = p
	case RowGEMM:
		g = GEMM(p)
	case TensorGEMM:
		g = GEMM(p)
		m += 10 // rows of several fragments
	}
	p := newGEMMProblem(t, r, g, m, n, k)
	c := p.call()
	kernel, err := product.Kernel()
	c.kernel, c.grid = build(t, kernel, err), product.Grid(m, n)
	c.check(t, "c", p.want)
	if t.Failed() {
		t.Fatal(fmt.Sprint(product, " ", m, n, k))
	}
}

// TestIntegerSumsRound checks products whose sums exceed 2^24 and are rounded to nearest even: all
// float scales are 1, so that a result is such a sum.
func TestIntegerSumsRound(t *testing.T) {
	const m, n, k = 3, 20, 256
	for _, typ := range []qtype.Type{qtype.Q4_K, qtype.Q6_K, qtype.IQ4_XS} {
		r := rand.New(rand.NewPCG(48, 24))
		g := GEMM{Weight: typ, Path: microkernel.ComputeInt8K, Rows: 1}
		p := newGEMMProblem(t, r, g, m, n, k)
		if err := microkernel.Pack(p.w, p.layout, 0, n, largeWeights(r, typ, n), 0); err != nil {
			t.Fatal(err)
		}
		for row := range m {
			x := make([]float32, k)
			for i := range x {
				x[i] = float32(100 + r.IntN(28))
			}
			x[0] = 127
			microkernel.RefVec().QuantizeRow(g.Path, &x[0], k, unsafe.Pointer(&p.a[row*p.aRow]))
		}
		p.reference()
		if sum := floats(p.want)[0]; sum < 1<<24 {
			t.Errorf("%s: the sum is %v, which is exact without rounding", typ, sum)
		}
		for _, product := range []Product{g, RowGEMM(g), TensorGEMM{Weight: typ, Path: g.Path, Rows: 16}} {
			c := p.call()
			kernel, err := product.Kernel()
			c.kernel, c.grid = build(t, kernel, err), product.Grid(m, n)
			c.check(t, "c", p.want)
		}
	}
}

// largeWeights returns n rows of one block with scale 1, without offsets, whose numbers and integer
// scales are nearly the largest ones.
func largeWeights(r *rand.Rand, typ qtype.Type, n int) []byte {
	d := typ.Desc()
	raw := make([]byte, n*d.Bytes)
	for i := range raw {
		raw[i] = 0xff &^ byte(r.IntN(2))
	}
	for at := 0; at < len(raw); at += d.Bytes {
		if typ == qtype.Q6_K {
			for i := range 16 {
				raw[at+d.SubRaw.At+i] = 0x7f
			}
		}
		for i, scale := range d.BlockScales {
			binary.LittleEndian.PutUint16(raw[at+scale:], [2]uint16{0x3c00, 0}[i])
		}
	}
	return raw
}
