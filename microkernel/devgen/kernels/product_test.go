package kernels

import (
	"testing"

	"sandwich/microkernel"
	"sandwich/microkernel/qtype"
)

// TestFor checks that every number of rows has a kernel that can be built, and which one.
func TestFor(t *testing.T) {
	for _, typ := range []qtype.Type{qtype.Q8_0, qtype.Q6_K, qtype.F16} {
		for _, path := range []microkernel.Compute{microkernel.ComputeF32, microkernel.ComputeInt8} {
			for _, e := range []Epilogue{Store, Gated} {
				for _, m := range []int{1, 2, 7, 8, 9, 31, 32, 33, 64, 100, 512} {
					for _, matrixUnit := range []bool{false, true} {
						if path != microkernel.ComputeF32 && !typ.Quantized() {
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
