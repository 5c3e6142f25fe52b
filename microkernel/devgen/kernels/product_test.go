package kernels

import (
	"math/rand/v2"
	"slices"
	"testing"

	"sandwich/microkernel"
	"sandwich/microkernel/devgen"
	"sandwich/microkernel/devgen/weights"
	"sandwich/microkernel/qtype"
)

// TestFor checks that every number of rows has a kernel that can be built, and which one.
func TestFor(t *testing.T) {
	for _, typ := range []qtype.Type{qtype.Q8_0, qtype.Q6_K, qtype.F16} {
		for _, path := range []microkernel.Compute{microkernel.ComputeF32, microkernel.ComputeInt8,
			microkernel.ComputeInt8K} {
			for _, e := range []Epilogue{Store, Gated} {
				for _, m := range []int{1, 2, 7, 8, 9, 31, 32, 33, 64, 100, 512} {
					for _, matrixUnit := range []bool{false, true} {
						if weights.Supports(typ, path) != nil {
							continue
						}
						g := GEMM{Weight: typ, Path: path, Epilogue: e}
						p := g.For(m, matrixUnit)
						k, err := p.Kernel()
						build(t, k, err)
						want := path != microkernel.ComputeF32 && m > 8 && matrixUnit
						if k.NeedsMatrixUnit() != want {
							t.Errorf("%+v of %d rows gives %T", g, m, p)
						}
						if grid := p.Grid(m, 100); grid[0] < 1 || grid[1] < 1 || grid[1] > m {
							t.Errorf("%T of %d rows: grid %v", p, m, grid)
						}
					}
				}
			}
		}
	}
}

// TestStatic checks that products of one shape have the results of those of every shape, whatever
// the push words of a launch are.
func TestStatic(t *testing.T) {
	const int8, superblock = microkernel.ComputeInt8, microkernel.ComputeInt8Superblock
	r := rand.New(rand.NewPCG(47, 1))
	for _, c := range []struct {
		product Product
		g       GEMM
		m, n, k int
	}{
		{GEMM{Weight: qtype.Q8_0, Path: int8, Rows: 4}, GEMM{Weight: qtype.Q8_0, Path: int8}, 6, 70, 64},
		{GEMM{Weight: qtype.F16, Rows: 4, Bias: true}, GEMM{Weight: qtype.F16, Bias: true}, 5, 33, 7},
		{RowGEMM{Weight: qtype.Q4_K, Path: int8, Rows: 2}, GEMM{Weight: qtype.Q4_K, Path: int8}, 3, 20, 256},
		{TensorGEMM{Weight: qtype.Q4_K, Path: superblock, Epilogue: Gated, Rows: 32},
			GEMM{Weight: qtype.Q4_K, Path: superblock, Epilogue: Gated}, 40, 90, 256},
		{TensorGEMM{Weight: qtype.Q2_K, Path: microkernel.ComputeInt8K, Rows: 16},
			GEMM{Weight: qtype.Q2_K, Path: microkernel.ComputeInt8K}, 9, 30, 256},
	} {
		p := newGEMMProblem(t, r, c.g, c.m, c.n, c.k)
		run := p.call()
		dynamic, err := c.product.Kernel()
		build(t, dynamic, err)
		s := Static{c.product, c.m, c.n, c.k, int(run.push[3]), int(run.push[4]), int(run.push[5])}
		kernel, err := s.Kernel()
		run.kernel, run.grid = build(t, kernel, err), s.Grid(c.m, c.n)
		for i := range run.push {
			run.push[i] = r.Uint32()
		}
		run.check(t, "c", p.want)
		was, is := reads(dynamic.Body, devgen.OpPush), reads(kernel.Body, devgen.OpPush)
		if dynamic.Static || !kernel.Static || !was || is {
			t.Errorf("%s: static %v, reads push words %v", kernel.Name, kernel.Static, is)
		}
	}
}

// reads reports whether a body has an operation.
func reads(body []devgen.Instr, op devgen.Op) bool {
	return slices.ContainsFunc(body, func(in devgen.Instr) bool { return in.Op == op || reads(in.Body, op) })
}
