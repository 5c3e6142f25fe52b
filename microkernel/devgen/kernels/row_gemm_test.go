package kernels

import (
	"math/rand/v2"
	"testing"

	"sandwich/microkernel"
	"sandwich/microkernel/qtype"
)

// rowVariants returns products of few rows of a weight type.
func rowVariants(typ qtype.Type) []RowGEMM {
	const int8, superblock = microkernel.ComputeInt8, microkernel.ComputeInt8Superblock
	return []RowGEMM{
		{Weight: typ, Path: int8, Rows: 1}, {Weight: typ, Path: superblock, Rows: 3},
		{Weight: typ, Path: int8, Epilogue: Add, Bias: true, Rows: 4},
		{Weight: typ, Path: int8, Epilogue: Gated, Rows: 2},
		{Weight: typ, Path: superblock, Epilogue: Gated, Unit: GeGLU, Rows: 1},
	}
}

func TestRowGEMM(t *testing.T) {
	for _, typ := range gemmTypes {
		if !typ.Quantized() {
			continue
		}
		r := rand.New(rand.NewPCG(12, uint64(typ)))
		for _, g := range rowVariants(typ) {
			m, n, k := 1+r.IntN(5), 1+r.IntN(40), max(typ.Block(), 32*(1+r.IntN(20)))
			if typ.Block() > 32 || g.Path == microkernel.ComputeInt8Superblock {
				k = 256 * (1 + r.IntN(3))
			}
			p := newGEMMProblem(t, r, GEMM(g), m, n, k)
			c := p.call()
			kernel, err := g.Kernel()
			c.kernel, c.grid = build(t, kernel, err), g.Grid(m, n)
			c.check(t, "c", p.want)
		}
	}
	for _, g := range []RowGEMM{{Weight: qtype.F16, Rows: 1}, {Weight: qtype.Q8_0, Path: microkernel.ComputeInt8},
		{Weight: qtype.Q8_0, Path: microkernel.ComputeInt8, Rows: 5}, {Weight: qtype.IQ4_NL, Rows: 1}} {
		if k, err := g.Kernel(); err == nil {
			t.Errorf("%+v gives %s, want an error", g, k.Name)
		}
	}
}
