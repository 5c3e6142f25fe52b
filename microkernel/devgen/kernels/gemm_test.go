package kernels

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"sandwich/microkernel"
	"sandwich/microkernel/qtype"
)

// gemmTypes are the weight types whose products are tested, moreTypes those with fewer variants.
var (
	gemmTypes = append([]qtype.Type{qtype.Q8_0, qtype.Q4_0, qtype.Q4_K, qtype.Q6_K, qtype.F16, qtype.BF16},
		moreTypes...)
	moreTypes = []qtype.Type{qtype.Q5_0, qtype.Q4_1, qtype.Q5_K, qtype.F32}
)

// gemmProblem has the operands of a product and its result by the CPU's plain Go.
type gemmProblem struct {
	g       GEMM
	m, n, k int
	aRow    int // bytes of a row of activations
	cRow    int // words
	layout  microkernel.Layout
	a, w    []byte
	up      []byte
	bias    []byte
	c, want []byte
}

func newGEMMProblem(t *testing.T, r *rand.Rand, g GEMM, m, n, k int) *gemmProblem {
	p := &gemmProblem{g: g, m: m, n: n, k: k, cRow: n + r.IntN(5)}
	_, p.w, p.layout = packed(t, r, g.Weight, n, k)
	_, p.up, _ = packed(t, r, g.Weight, n, k)
	p.bias, p.c = randomFloats(r, n), words(m*p.cRow)
	if g.Epilogue == Add {
		p.c = randomFloats(r, m*p.cRow)
	}
	p.activations(r)
	p.reference()
	return p
}

// activations makes random rows and converts them for the path.
func (p *gemmProblem) activations(r *rand.Rand) {
	x := randomFloats(r, p.m*p.k)
	if p.m > 2 { // a row with a block of zeros
		clear(x[4*p.k : 4*p.k+4*min(p.k, 64)])
	}
	if p.g.Path == microkernel.ComputeF32 {
		p.a, p.aRow = x, 4*p.k
		return
	}
	p.aRow = p.g.Path.ActRowBytes(p.k) + 16*r.IntN(2)
	p.a = words(p.m * p.aRow / 4)
	for i := range p.m {
		microkernel.RefVec().QuantizeRow(p.g.Path, &floats(x)[i*p.k], p.k, unsafe.Pointer(&p.a[i*p.aRow]))
	}
}

// multiply returns A*W by the plain-Go kernel, rows of n.
func (p *gemmProblem) multiply(w []byte) []float32 {
	c := make([]float32, p.m*p.n)
	s := microkernel.Spec{ISA: microkernel.Go, Compute: p.g.Path, B: p.g.Weight}
	microkernel.RunRef(s, &microkernel.GemmArgs{A: unsafe.Pointer(&p.a[0]), AStride: p.aRow, B: unsafe.Pointer(&w[0]),
		BStride: p.layout.PanelStride(), C: unsafe.Pointer(&c[0]), CStride: 4 * p.n, M: p.m, N: p.n, K1: p.k})
	return c
}

// reference computes the result by the operations of the CPU.
func (p *gemmProblem) reference() {
	p.want = bytes.Clone(p.c)
	v, c := microkernel.RefVec(), p.multiply(p.w)
	out := floats(p.want)
	if p.g.Epilogue == Gated {
		unit := [...]microkernel.GLU{SwiGLU: microkernel.SwiGLU, GeGLU: microkernel.GeGLU}[p.g.Unit]
		v.GLURows(unit, &out[0], p.cRow, &c[0], p.n, &p.multiply(p.up)[0], p.n, p.m, p.n)
		return
	}
	if p.g.Bias {
		v.AddBias(&c[0], p.n, p.m, &floats(p.bias)[0], p.n)
	}
	if p.g.Epilogue == Add {
		v.AddRows(&out[0], p.cRow, &c[0], p.n, p.m, p.n)
		return
	}
	for i := range p.m {
		copy(out[i*p.cRow:], c[i*p.n:][:p.n])
	}
}

// call returns the dispatch of the product.
func (p *gemmProblem) call() call {
	c := call{buffers: [][]byte{p.a, p.w}}
	if p.g.Epilogue == Gated {
		c.buffers = append(c.buffers, p.up)
	}
	if p.g.Bias {
		c.buffers = append(c.buffers, p.bias)
	}
	c.buffers = append(c.buffers, p.c)
	c.push = pushed(p.m, p.n, p.k, p.aRow/4, p.layout.PanelStride()/4, p.cRow)
	return c
}

// gemmVariants returns all products of a weight type.
func gemmVariants(typ qtype.Type) (list []GEMM) {
	paths := []microkernel.Compute{microkernel.ComputeF32}
	if typ.Quantized() {
		paths = append(paths, microkernel.ComputeInt8, microkernel.ComputeInt8Superblock)
	}
	for _, path := range paths {
		list = append(list,
			GEMM{Weight: typ, Path: path, Rows: 4}, GEMM{Weight: typ, Path: path, Epilogue: Add, Rows: 1})
		if slices.Contains(moreTypes, typ) {
			continue
		}
		list = append(list,
			GEMM{Weight: typ, Path: path, Bias: true, Rows: 2, Panels: 3},
			GEMM{Weight: typ, Path: path, Epilogue: Gated, Rows: 3, Panels: 2},
			GEMM{Weight: typ, Path: path, Epilogue: Gated, Unit: GeGLU, Rows: 1})
	}
	return list
}

func TestGEMM(t *testing.T) {
	for _, typ := range gemmTypes {
		t.Run(typ.String(), func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, uint64(typ)))
			for i, g := range gemmVariants(typ) {
				m, n, k := 1+r.IntN(6), 1+r.IntN(80), typ.Block()*(1+r.IntN(2))
				if typ.Block() == 1 {
					k = 1 + r.IntN(70)
				}
				if g.Path == microkernel.ComputeInt8Superblock {
					k = 256 * (1 + i%2)
				}
				p := newGEMMProblem(t, r, g, m, n, k)
				c := p.call()
				kernel, err := g.Kernel()
				c.kernel, c.grid = build(t, kernel, err), g.Grid(m, n)
				c.check(t, "c", p.want)
				if t.Failed() {
					t.Fatal(fmt.Sprint(g, " ", m, n, k))
				}
			}
		})
	}
}

func TestGEMMRefuses(t *testing.T) {
	for _, g := range []GEMM{
		{Weight: qtype.IQ4_NL, Rows: 1}, {Weight: qtype.Q2_K, Rows: 1}, {Weight: 200, Rows: 1},
		{Weight: qtype.F16, Path: microkernel.ComputeInt8, Rows: 1},
		{Weight: qtype.Q8_0, Path: microkernel.ComputeBF16, Rows: 1}, {Weight: qtype.Q8_0},
		{Weight: qtype.Q8_0, Rows: 17}, {Weight: qtype.Q8_0, Rows: 1, Panels: 5},
		{Weight: qtype.Q8_0, Rows: 1, Epilogue: Gated, Bias: true},
	} {
		if k, err := g.Kernel(); err == nil {
			t.Errorf("%+v gives %s, want an error", g, k.Name)
		}
	}
}
