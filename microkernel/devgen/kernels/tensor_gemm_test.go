package kernels

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sandwich/microkernel"
	"sandwich/microkernel/devgen/ptx"
	"sandwich/microkernel/devgen/spirv"
	"sandwich/microkernel/qtype"
)

// tensorVariants returns products on tensor cores of a weight type.
func tensorVariants(typ qtype.Type) []TensorGEMM {
	const int8, superblock = microkernel.ComputeInt8, microkernel.ComputeInt8Superblock
	if slices.Contains(moreTypes, typ) {
		return []TensorGEMM{{Weight: typ, Path: int8, Rows: 32}}
	}
	return []TensorGEMM{
		{Weight: typ, Path: int8, Rows: 64}, {Weight: typ, Path: superblock, Rows: 16},
		{Weight: typ, Path: int8, Epilogue: Add, Bias: true, Rows: 48},
		{Weight: typ, Path: int8, Epilogue: Gated, Rows: 32},
		{Weight: typ, Path: superblock, Epilogue: Gated, Rows: 64},
	}
}

func TestTensorGEMM(t *testing.T) {
	for _, typ := range gemmTypes {
		if !typ.Quantized() {
			continue
		}
		t.Run(typ.String(), func(t *testing.T) {
			r := rand.New(rand.NewPCG(11, uint64(typ)))
			for i, g := range tensorVariants(typ) {
				m, n, k := 1+r.IntN(40), 1+r.IntN(150), max(typ.Block(), 32*(1+r.IntN(6)))
				if g.Path == microkernel.ComputeInt8Superblock {
					k = 256 * (1 + i%2)
				}
				p := newGEMMProblem(t, r, GEMM(g), m, n, k)
				c := p.call()
				kernel, err := g.Kernel()
				c.kernel, c.grid = build(t, kernel, err), g.Grid(m, n)
				c.check(t, "c", p.want)
			}
		})
	}
}

func TestTensorGEMMRefuses(t *testing.T) {
	for _, g := range []TensorGEMM{
		{Weight: qtype.F16, Rows: 32}, {Weight: qtype.Q8_0, Rows: 32},
		{Weight: qtype.Q8_0, Path: microkernel.ComputeInt8, Rows: 24},
		{Weight: qtype.Q8_0, Path: microkernel.ComputeInt8, Rows: 128},
		{Weight: qtype.IQ4_NL, Path: microkernel.ComputeInt8, Rows: 32},
	} {
		if k, err := g.Kernel(); err == nil {
			t.Errorf("%+v gives %s, want an error", g, k.Name)
		}
	}
	k, err := tensorVariants(qtype.Q8_0)[0].Kernel()
	build(t, k, err)
	if _, err := spirv.Emit(k, spirv.Options{}); err == nil {
		t.Error("SPIR-V of a kernel for tensor cores; want an error")
	}
	for _, target := range []ptx.Target{75, 60} {
		if _, err := ptx.Emit(k, target); err == nil || !strings.Contains(err.Error(), "compute capability") {
			t.Errorf("PTX for sm_%d: %v, want an error", target, err)
		}
	}
}
