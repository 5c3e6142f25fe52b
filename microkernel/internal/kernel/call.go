package kernel

import (
	"unsafe"

	"sandwich/microkernel/qtype"
)

// GemmArgs is one call of a kernel: C[0:M, 0:N] = A[0:M, K0:K1] times the transpose of
// W[0:N, K0:K1], for one group of panels.
//
// A points at k = 0 of the first row: float32, ActQ8 blocks for ComputeInt8, bfloat16 for
// ComputeBF16. B points at k = 0 of the first panel of the group. C is float32. Nothing is written
// outside the M rows and N columns, and nothing is read outside the operands.
type GemmArgs struct {
	A       unsafe.Pointer
	AStride int // bytes between rows
	B       unsafe.Pointer
	BStride int // bytes between panels
	C       unsafe.Pointer
	CStride int // bytes between rows

	M, N   int // rows, any; columns, 1 to NR
	K0, K1 int // multiples of the weight type's KStep; K1 may also be the end of an odd K
	// Accumulate continues the chains from the stored C. Every k-block but the first sets it; the
	// first starts from zero.
	Accumulate bool
	// NextB is the start of the block of weights that is multiplied after this one, at its K0 and
	// with the same BStride, or nil if unknown. Kernels with software prefetch prefetch it. It need
	// not be mapped.
	NextB unsafe.Pointer
}

// TileArgs are the arguments of a generated tile function: Tiles row tiles of exactly MR rows,
// against panels of exactly NR columns. The function advances A and C itself. Addresses are
// integers because the function changes them; the caller keeps the memory alive.
type TileArgs struct {
	A, LDA     uintptr // first row of A, bytes between rows
	B, BStride uintptr // first panel, bytes between panels
	C, LDC     uintptr // first row of C, bytes between rows
	Main       uintptr // iterations of the unrolled loop (blocks, for quantized weights)
	Rest       uintptr // single steps after it (pairs of k for bf16)
	Odd        uintptr // bf16: 1 if one last k has no partner
	Tiles      uintptr
	AStep      uintptr // MR rows of A in bytes
	CStep      uintptr // MR rows of C in bytes
	Load       uintptr // 1: continue from the stored C; 0: start from zero
	Mask       uintptr // columns of the last panel, one bit each
	Columns    uintptr // columns of the last panel
	Lanes      [qtype.PanelWidth]int32

	// Of software prefetch, see the backends.
	InBlock   uintptr // iterations whose prefetches lie in this block of weights
	InNext    uintptr // iterations after them, whose prefetches lie in the next block
	Left      uintptr // iterations of InNext that the current row tile has not begun
	Jump      uintptr // bytes from the end of this block of weights to the next one
	NextB     uintptr // where spread prefetching continues
	Period    uintptr // of spread prefetching: row tiles
	Countdown uintptr // places left until its next line
}

// WidenArgs are the arguments of a generated function that dequantizes a panel.
type WidenArgs struct {
	Src, Dst   uintptr
	Main, Rest uintptr // iterations of the loop, single k after it
}

// WidenStep returns the elements of k of one iteration of such a function.
func WidenStep(b qtype.Type) int { return max(b.Block(), 8) }
