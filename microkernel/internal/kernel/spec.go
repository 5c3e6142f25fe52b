package kernel

import (
	"fmt"

	"sandwich/microkernel/qtype"
)

// Spec describes a kernel completely: equal specs generate equal machine code. Plans store specs,
// never code.
type Spec struct {
	ISA     ISA
	Compute Compute
	B       qtype.Type
	MR, NR  int // register tile: rows of A by columns of W; NR is a multiple of qtype.PanelWidth
	KU      int // elements of k per iteration of the inner loop
	Form    Form
	Dot     Dot
	// Prefetch is the software prefetch distance in bytes within each panel; 0 leaves prefetching
	// to the hardware. On amd64, beyond MaxSinglePrefetch, each line is requested twice: first at
	// this distance, then at MaxSinglePrefetch.
	Prefetch int
	// Spread prefetches the next block of weights (GemmArgs.NextB) evenly over all row tiles of
	// this block, instead of at a distance.
	Spread bool
}

// Assemble generates the machine code of one tile of the spec's size, on any host. Equal specs give
// equal bytes.
func (s Spec) Assemble() ([]byte, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	code, err := s.ISA.Target().GEMM.Assemble(s)
	if err != nil {
		return nil, fmt.Errorf("kernel spec %s: %w", s, err)
	}
	return code, nil
}

// Needs returns the features that a host must have to run the kernel.
func (s Spec) Needs() Features {
	t := s.ISA.Target()
	if t == nil {
		return 0
	}
	return t.Needs | t.GEMM.NeedsOf(s) | s.Dot.info().Needs
}

// Iteration returns the elements of k of one iteration of the main loop.
func (s Spec) Iteration() int { return max(s.KU, s.B.Block()) }

// IterationsAhead returns the prefetch distance in iterations of the main loop, at least 1.
func (s Spec) IterationsAhead() int {
	unit := s.B.PanelOffset(s.Iteration())
	return max(1, (s.Prefetch+unit/2)/unit)
}

// Prefetches reports whether the kernel uses software prefetch.
func (s Spec) Prefetches() bool { return s.Prefetch > 0 || s.Spread }

// MaxSinglePrefetch is the largest prefetch distance in bytes at which a kernel of amd64 requests
// each line only once, into the first-level cache. See Spec.Prefetch.
const MaxSinglePrefetch = 1024

// WithPrefetch returns the spec with a software prefetch distance in bytes.
func (s Spec) WithPrefetch(bytes int) Spec {
	s.Prefetch, s.Spread = bytes, false
	return s
}

// WithSpread returns the spec with its prefetch spread over all row tiles.
func (s Spec) WithSpread() Spec {
	s.Prefetch, s.Spread = 0, true
	return s
}

// MatrixUnit reports whether a matrix unit computes the products: a tile of them per instruction.
func (s Spec) MatrixUnit() bool { return s.Form == Outer || s.Dot.info().MatrixUnit }

// KeepsSums reports whether sums stay in the tiles of a matrix unit over a superblock or more. Such
// kernels prepare weights once per call, which pays off with many rows.
func (s Spec) KeepsSums() bool {
	return s.MatrixUnit() && (s.Compute == ComputeInt8K || s.Compute == ComputeBF16Tile)
}

// OrdinaryForm reports whether the form is the first choice without measurements.
func (s Spec) OrdinaryForm() bool { return s.Form == s.ISA.Target().Forms[0] }

// DequantizesOnce reports whether weights are dequantized once for all rows of a call, which pays
// off only with many rows.
func (s Spec) DequantizesOnce() bool { return s.Form == DequantOnce }

// Overlaps reports whether weights are unpacked by vectors while the matrix unit multiplies.
func (s Spec) Overlaps() bool { return s.Form == Overlap }

// EmbedsLoads reports whether the multiply-add loads an operand itself.
func (s Spec) EmbedsLoads() bool { return s.Form == Embed }

// SameBits reports whether two kernels of one weight type compute the same bits. Kernels of one
// exact compute path do. Kernels of a bfloat16 path do only if both or neither use a dot-product
// instruction, and both round sums the same way (to nearest or to odd).
func (s Spec) SameBits(o Spec) bool {
	return s.Compute == o.Compute && (s.Compute.Exact() || s.Dot.RoundsToOdd() == o.Dot.RoundsToOdd() &&
		(s.Dot == NoDot) == (o.Dot == NoDot))
}

// Code returns the spec whose machine code serves this tile: itself, unless its target has code
// that does not depend on the columns.
func (s Spec) Code() Spec { return s.ISA.Target().GEMM.CodeSpec(s) }

// EachTile calls visit with the specs of the tile and of every smaller one, rows outermost.
func (s Spec) EachTile(visit func(Spec) error) error {
	for mr := 1; mr <= s.MR; mr++ {
		for nr := qtype.PanelWidth; nr <= s.NR; nr += qtype.PanelWidth {
			t := s
			t.MR, t.NR = mr, nr
			if err := visit(t); err != nil {
				return err
			}
		}
	}
	return nil
}
