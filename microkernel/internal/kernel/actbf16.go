package kernel

// A row of bfloat16 activations, the operand A of ComputeBF16 kernels, is K bfloat16 in ascending k
// and a zero after an odd K. Two consecutive k form one 32-bit word, as in the panels of bf16
// weights: the operands of a dot product of pairs.
//
// The chain of an element adds two products for each pair of k, pairs ascending. The instruction
// decides how the three numbers are added, so a plan that uses the path is not exact. Within one
// architecture the chain does not depend on the tile.
//
//	dpbf16          sum = fma(a1, w1, sum), then sum = fma(a0, w0, sum), each rounded to nearest even
//	bfdot, bfmmla   sum = sum + (a0*w0 + a1*w1), each operation rounded to odd, every NaN the default NaN
//
// Both read subnormal numbers as zeros and flush subnormal results to zero. Intel: Software
// Developer's Manual, VDPBF16PS; Arm: Architecture Reference Manual, BFDotAdd without FPCR.EBF of
// FEAT_EBF16, which Linux leaves clear.

// ActBF16RowBytes returns the length of a row of k activations.
func ActBF16RowBytes(k int) int { return 2 * (k + k%2) }
