package kernel

// A row of bfloat16 activations, what ComputeBF16 kernels read as A, is K bfloat16 in ascending k, and a zero behind an odd K. Two
// consecutive k are one 32-bit word, as in the panels of bf16 weights (Layout): the operands of a dot product of pairs.
//
// The chain of an element is one addition of two products for each pair of k, pairs ascending. How the three numbers are added is the
// instruction's affair and not rule 6's: a plan that has it is not exact. Within one architecture the chain is the same whatever
// the tile.
//
//	dpbf16          sum = fma(a1, w1, sum), then sum = fma(a0, w0, sum), each rounded to nearest even
//	bfdot, bfmmla   sum = sum + (a0*w0 + a1*w1), each operation rounded to odd, and every NaN the default one
//
// Both take subnormal numbers for zeros and make zeros of them. Intel: Software Developer's Manual, VDPBF16PS; Arm: Architecture Reference
// Manual, BFDotAdd without FEAT_EBF16's FPCR.EBF, which Linux leaves clear.

// ActBF16RowBytes is the length of a row of k activations.
func ActBF16RowBytes(k int) int { return 2 * (k + k%2) }
