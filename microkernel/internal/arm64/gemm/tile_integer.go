package gemm

import (
	"sandwich/microkernel/internal/arm64/asm"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// The chain "integer" keeps exact sums of a superblock next to the accumulators.

// scaleIntegers adds the dot products of the span at k0, times its integer scales, to the sums of
// vector j.
func (e *int8Tile) scaleIntegers(j, k0 int) {
	if e.Subs == qtype.NoSubs {
		for r, d := range e.dot {
			sum := e.sums[r*e.v+j]
			e.I(asm.ADDV4S, sum, sum, d)
		}
		return
	}
	w, x := e.w[0], e.w[1]
	switch e.Subs {
	case qtype.PairSubs:
		e.sub(w, j, 0)
	case qtype.NibbleSubs:
		e.sub(w, j, k0/16)
		e.I(asm.SHL4S, w, w, asm.Imm(28))
		e.I(asm.USHR4S, w, w, asm.Imm(28))
	case qtype.SignedSubs:
		e.sub(w, j, k0/e.Span())
	default:
		e.oddSub(w, x, j, k0)
	}
	for r, d := range e.dot {
		e.I(asm.MLA4S, e.sums[r*e.v+j], d, w)
	}
}

// Offsets in the activations of a finished superblock from its last byte of numbers on, where the
// row pointers are.
const (
	doneHalfSums = kernel.ActKHalfSums - kernel.ActQ8Group
	doneScale    = kernel.ActKScale - kernel.ActQ8Group
	doneNext     = kernel.ActQ8KBytes - kernel.ActQ8Group
)

// endSuperblock adds the sums of the finished superblock to the accumulators and clears them.
func (e *int8Tile) endSuperblock() {
	for j := range e.v {
		e.addSums(j, 0, func(r int) asm.V { return e.sums[r*e.v+j] })
		if e.Affine() {
			e.sumOffsets(j)
			e.addSums(j, 1, func(r int) asm.V { return e.dot[r] })
		}
	}
	for _, sum := range e.sums {
		e.Zero(sum)
	}
	e.advance(e.aBase, doneNext)
}

// addSums adds integer sums of vector j, times scale n of the superblock and that of the
// activations, to the accumulators. Those of offsets are subtracted.
func (e *int8Tile) addSums(j, n int, sums func(r int) asm.V) {
	scale, t, x := e.w[0], e.w[1], e.w[2]
	e.blockScale(scale, j, n)
	if n == 0 {
		e.times1(scale, t)
	}
	for r := range e.s.MR {
		sum := sums(r)
		e.I(asm.SCVTF, sum, sum)
		if n > 0 {
			e.I(asm.FNEG, sum, sum)
		}
		e.I(asm.LDRS, t, e.aBase[r], asm.Imm(doneScale))
		e.I(asm.FMULL, x, scale, t, asm.Imm(0))
		e.I(asm.FMLA, e.acc[r*e.v+j], sum, x)
	}
}

// sumOffsets computes the sums over the superblock of the integer offsets of vector j times the
// sums of activations, in the dot products.
func (e *int8Tile) sumOffsets(j int) {
	w, t, x := e.w[0], e.w[1], e.w[2]
	for _, d := range e.dot {
		e.Zero(d)
	}
	// The panel pointers are after the last sub-block.
	e.AddImm(nTmp2, e.panelOf(j), -e.SubBlocks()*e.SubBlockBytes())
	for n := range e.SubBlocks() {
		for half := range 2 {
			at := n*e.SubBlockBytes() + 4*(j%perPanel)
			switch {
			case e.Subs == qtype.NibbleSubs:
				e.bytesAt(w, at+qtype.PanelWidth*half)
				e.I(asm.USHR4S, w, w, asm.Imm(4))
			case half == 0:
				e.bytesAt(w, at+qtype.PanelWidth)
			}
			for r, d := range e.dot {
				e.I(asm.LDRS, t, e.aBase[r], asm.Imm(doneHalfSums+4*n))
				e.I(asm.SSHLL4H, t, t, asm.Imm(0))
				e.I(asm.DUPS, x, t, asm.Imm(half))
				e.I(asm.MLA4S, d, x, w)
			}
		}
	}
}

// bytesAt loads four bytes at an offset from nTmp2 as 32-bit integers.
func (e *int8Tile) bytesAt(v asm.V, at int) {
	e.I(asm.LDRS, v, nTmp2, asm.Imm(at))
	e.I(asm.USHLL8B, v, v, asm.Imm(0))
	e.I(asm.USHLL4H, v, v, asm.Imm(0))
}
