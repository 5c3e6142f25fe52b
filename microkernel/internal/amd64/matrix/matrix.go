// Package matrix emits the kernels of amd64 whose sums stay in the tile registers of the matrix
// unit over all k of a piece: bfloat16 products (bf16*) and products of superblocks that are
// unpacked to two planes of bytes first (planes*). Package gemm has the kernels that scale sums of
// sub-blocks in vector registers, and the code that unpacks.
package matrix

import "sandwich/microkernel/internal/amd64/asm"

const (
	Rows       = 16       // of a tile register
	PairRows   = 2 * Rows // of a call with two tiles of rows
	PairPanels = 4        // the most panels of a call, next to one tile of rows

	cacheLine = 64
)

// UnpackArgs are the arguments of a function that unpacks or dequantizes superblocks of a panel.
type UnpackArgs struct {
	From, To uintptr
	Blocks   uintptr // of 256 k
}

// Registers of the tile functions.
const (
	rArgs  = asm.RDI
	rB     = asm.RSI
	rBS    = asm.RDX // bytes between panels
	rCount = asm.RCX
	rLDA   = asm.RAX // bytes between rows
	kLast  = asm.K1  // columns of the last panel
)

// pointerPool provides row and panel pointers.
var pointerPool = [...]asm.Reg{asm.R8, asm.R9, asm.R10, asm.R11, asm.R12, asm.R13, asm.R14, asm.R15, asm.RBX}
