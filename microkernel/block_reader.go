package microkernel

import (
	"runtime"
	"unsafe"
)

// BlockReader multiplies few rows by panels of q8_0 weights in blocks of k, as products of few rows
// do. While the rows are multiplied by one block, the kernel prefetches the next one.
// profiles/calibrate uses it to measure the best depth of such blocks. It is not safe for
// concurrent use.
type BlockReader struct {
	Spec   Spec
	Bytes  int // of panels that one call reads: a region is read in whole calls
	blocks int // of nearly equal depth, since each prefetches as much as it reads
	stride int // of panels
	kernel *Kernel
	a      []byte
	c      []float32
}

// Rows, panels and depth of a call of a BlockReader: those of a short prompt or a decode batch, on
// a matrix of common size.
const (
	blockRows   = 9
	blockPanels = 4
	blockDepth  = 4096
	blockSteps  = blockDepth / ActQ8Block
	blockStride = blockSteps + 1 // of rows, in steps; one more than needed keeps rows out of the same sets of L1
)

// NewBlockReader builds the kernel of an instruction set for blocks of at most the given bytes,
// and at least one step of k. It is not native if there is no such code.
func NewBlockReader(isa ISA, bytes int) (*BlockReader, error) {
	var tile *Spec
	for panels := blockPanels; panels > 0 && tile == nil; panels-- {
		tile = largest(SpaceOf(Host(), isa, ComputeInt8, Q8_0, func(s Spec) bool {
			return s.OrdinaryForm() && s.CanSpread() && !s.MatrixUnit() && s.NR == panels*PanelWidth
		}))
	}
	if tile == nil {
		return &BlockReader{}, nil
	}
	best := tile.WithSpread()
	k, err := Build(best)
	if err != nil || !k.Native() {
		return &BlockReader{}, err
	}
	l := Layout{Type: Q8_0, N: best.NR, K: blockDepth}
	steps := max(1, bytes/(PanelOffset(Q8_0, ActQ8Block)*best.NR/PanelWidth)) // of a block
	r := &BlockReader{Spec: best, Bytes: l.Bytes(), stride: l.PanelStride(), kernel: k,
		blocks: (blockSteps + steps - 1) / steps,
		a:      make([]byte, blockRows*blockStride*ActQ8Bytes), c: make([]float32, blockRows*best.NR)}
	new(trial).rows(r.a, ComputeInt8)
	return r, nil
}

// Native reports whether the reader runs generated code. Otherwise it reads nothing.
func (r *BlockReader) Native() bool { return r.kernel != nil }

// at returns the k at which a block begins.
func (r *BlockReader) at(block int) int { return block * blockSteps / r.blocks * ActQ8Block }

// Read reads Bytes bytes of any content from b, which is off the Go heap or kept alive. It
// prefetches the bytes after them but does not read them.
func (r *BlockReader) Read(b []byte) {
	args := GemmArgs{A: unsafe.Pointer(&r.a[0]), AStride: blockStride * ActQ8Bytes,
		B: unsafe.Pointer(&b[:r.Bytes][0]), BStride: r.stride, C: unsafe.Pointer(&r.c[0]), CStride: 4 * r.Spec.NR,
		M: blockRows, N: r.Spec.NR}
	for i := range r.blocks {
		args.K0, args.K1, args.Accumulate = r.at(i), r.at(i+1), i > 0
		next := PanelOffset(Q8_0, args.K1)
		if args.K1 == blockDepth {
			next = r.Bytes
		}
		args.NextB = unsafe.Add(args.B, next)
		r.kernel.Run(&args)
	}
	runtime.KeepAlive(r)
	runtime.KeepAlive(b)
}
