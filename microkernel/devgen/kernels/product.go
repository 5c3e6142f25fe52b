package kernels

import (
	"fmt"

	"sandwich/microkernel/devgen"
	"sandwich/microkernel/internal/kernel"
)

// Product is the kernel of a matrix product: a GEMM, a TensorGEMM or a RowGEMM. The bindings, the
// push words and the bits of its results are those of GEMM. Products are comparable.
type Product interface {
	Kernel() (*devgen.Kernel, error)
	Grid(m, n int) [3]int
}

// For returns the kernel that computes the product for m rows, on a device with or without a matrix
// unit. It chooses Rows and Panels from a few values, so that few kernels have to be compiled.
func (g GEMM) For(m int, matrixUnit bool) Product {
	const (
		few  = 8  // rows up to which RowGEMM keeps more loads in flight
		many = 32 // rows from which GEMM computes two panels
	)
	integer := g.Path != kernel.ComputeF32
	switch {
	case integer && m <= few:
		g.Rows, g.Panels = 1, 0
		for g.Rows < min(m, few/2) {
			g.Rows *= 2
		}
		return RowGEMM(g)
	case integer && matrixUnit:
		g.Rows, g.Panels = 16, 0
		for g.Rows < min(m, maxTensorRows) {
			g.Rows *= 2
		}
		return TensorGEMM(g)
	}
	g.Rows, g.Panels = 1, 1
	if m >= few {
		g.Rows = few
	}
	if m >= many && g.Epilogue != Gated {
		g.Panels = 2
	}
	return g
}

// Static is a product of one shape. The push words are constants of its kernel, which does not read
// those of a launch. Values are comparable.
type Static struct {
	Product
	M, N, K                   int
	AStride, WStride, CStride int // words
}

// Kernel builds the kernel, whose name determines its code.
func (s Static) Kernel() (*devgen.Kernel, error) {
	k, err := s.Product.Kernel()
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%s_%dx%dx%d_%d_%d_%d", k.Name, s.M, s.N, s.K, s.AStride, s.WStride, s.CStride)
	return devgen.Bind(k, name, map[string]uint32{"m": uint32(s.M), "n": uint32(s.N), "k": uint32(s.K),
		"a_stride": uint32(s.AStride), "w_stride": uint32(s.WStride), "c_stride": uint32(s.CStride)})
}
