// Package attention emits the fused attention kernels of amd64: scores, softmax, value products and
// the merge into a running state, for blocks of 64 positions (Dao et al.: FlashAttention, 2022;
// Milakov, Gimelshein: Online normalizer calculation for softmax, 2018). Package vec holds the
// plain-Go definition.
//
// A kernel multiplies by one of four dot products: FMAs of float32, VDPBF16PS or TDPBF16PS on pairs
// of bfloat16, or VPDPBUSD on integers. Blocks are read as they are cached, or in a layout that
// OpenBlock produces for several kernels.
//
// The package must not import amd64/gemm or amd64/vector.
package attention

import (
	"fmt"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/amd64/lanes"
	"sandwich/microkernel/internal/kernel"
)

// Generator implements kernel.AttentionGenerator for one level of amd64.
type Generator struct{ Level asm.Level }

// Rows returns the largest number of rows of a kernel, or 0 without the dot product.
func (v Generator) Rows(d kernel.Dot) int { return maxRows(v.Level, d) }

// Sizes returns the memory that a kernel needs.
func (v Generator) Sizes(s kernel.AttentionSpec) kernel.AttentionSizes {
	k := spec{s}
	return kernel.AttentionSizes{Scratch: k.scratchBytes(), Query: k.queryLen(), Opened: k.openedBytes()}
}

// Kernel returns the code of an attention kernel.
func (v Generator) Kernel(s kernel.AttentionSpec) ([]byte, error) {
	if limit := maxRows(v.Level, s.Dot); s.Rows < 1 || s.Rows > limit || s.HeadDim < 1 {
		return nil, fmt.Errorf("attention kernel: %d rows with head dimension %d; the rows must be 1 to %d and the "+
			"dimension positive", s.Rows, s.HeadDim, limit)
	}
	g := &gen{lanes.New(v.Level), spec{s}}
	g.emit()
	return g.end()
}

// OpenBlock returns the code that converts a cached block for its dot product: to pairs of
// bfloat16, or to transposed lines of integers.
func (v Generator) OpenBlock(s kernel.AttentionSpec) ([]byte, error) {
	if maxRows(v.Level, s.Dot) == 0 || s.Dot == kernel.NoDot || s.Opened || s.HeadDim < 1 {
		return nil, fmt.Errorf("attention kernel %+v has no opened blocks", s)
	}
	g := &gen{lanes.New(v.Level), spec{s}}
	g.Mov(kReg, asm.At(args, offKV))
	g.Lea(vReg, asm.At(kReg, g.keyBytes()))
	g.Mov(stateReg, asm.At(args, offState))
	g.Mov(scrReg, asm.At(args, offScratch))
	g.Mov(count, asm.At(args, offBlocks))
	g.Mov(ahead, asm.At(args, offAfter))
	if g.integers() {
		g.openIntegers()
	} else {
		g.Store32(asm.At(scrReg, kernel.ScratchLargest), count)
		g.widenScales()
		g.pairBlock(stateReg, 0)
	}
	return g.end()
}

// end returns the code of the function.
func (g *gen) end() ([]byte, error) {
	machine, err := g.End()
	if err != nil {
		return nil, fmt.Errorf("attention kernel %+v: %w", g.AttentionSpec, err)
	}
	return machine, nil
}

// emit emits the loop over the blocks.
func (g *gen) emit() {
	g.Mov(qReg, asm.At(args, offQ))
	g.Mov(stateReg, asm.At(args, offState))
	g.Mov(scrReg, asm.At(args, offScratch))
	g.Mov(table, asm.At(args, offTable))
	g.Mov(blocks, asm.At(args, offBlocks))
	g.configureTiles()
	g.widenQueries()
	done, next := g.NewLabel(), g.NewLabel()
	g.Test(blocks, blocks)
	g.Jcc(asm.LessOrEqual, done)
	loop := g.Here()
	g.blockAddress(kReg, 0)
	g.Lea(vReg, asm.At(kReg, g.keyBytes()))
	g.next()
	g.seen()
	g.Jcc(asm.Zero, next)
	g.widenScales()
	if !g.chained() && !g.Opened && !g.integers() {
		g.pairsInPlace()
	}
	scores, values := g.products()
	scores()
	g.adjustScores()
	g.softmaxRows()
	g.mergeSums()
	switch {
	case g.integers():
		g.integerWeights()
	case g.byFMA():
		g.roundToFloat()
	case g.Dot != kernel.NoDot:
		g.roundRows()
	}
	values()
	g.Bind(next)
	g.Add(table, asm.Imm32(4))
	g.Dec(blocks)
	g.Jcc(asm.NotZero, loop)
	g.Bind(done)
	g.releaseTiles()
}

// products returns the emitters of scores and of values.
func (g *gen) products() (scores, values func()) {
	switch {
	case g.integers():
		return g.integerScores, g.integerValues
	case g.byFMA() && g.Dot == kernel.TDPBF16:
		return g.fmaScores, g.fmaValues
	case g.streams():
		return g.streamScores, g.streamValues
	case g.Dot == kernel.TDPBF16:
		return g.tileScores, g.tileValues
	}
	return g.scores, g.values
}

// next sets the prefetch pointer to the block of the next table entry, or to AttentionArgs.After
// at the end of the table.
func (g *gen) next() {
	last := g.NewLabel()
	g.Mov(ahead, asm.At(args, offAfter))
	g.Mov(count, asm.At(args, offLast))
	g.Cmp(table, count)
	g.Jcc(asm.AboveOrEqual, last)
	g.blockAddress(ahead, 1)
	g.Bind(last)
}

// blockAddress computes the address of the block whose id is `entry` entries after the current
// one. It overwrites count.
func (g *gen) blockAddress(dst asm.Reg, entry int) {
	g.MovSXD(dst, asm.At(table, 4*entry))
	g.Mov(count, asm.At(args, offPitch))
	g.IMul(dst, count)
	g.Add(dst, asm.At(args, offKV))
}

// seen stores how many positions of the block each row sees, decrements the remaining positions by
// a block, and leaves the largest number in count with the flags set.
func (g *gen) seen() {
	left, n, t := g.V(0), g.V(1), g.V(2)
	g.I(asm.VMOVUPS, left, asm.At(stateReg, kernel.StateLeft))
	g.I(asm.VXORPS, n, n, n)
	g.I(asm.VPMAXSD, n, n, left)
	g.I(asm.VPMINSD, n, n, g.Splat(positions))
	g.I(asm.VMOVUPS, asm.At(scrReg, kernel.ScratchSeen), n)
	if g.Window {
		g.skipped(n)
	}
	g.I(asm.VPSUBD, t, left, g.Splat(positions))
	g.I(asm.VMOVUPS, asm.At(stateReg, kernel.StateLeft), t)
	bound := make([]uint32, g.V(0).Bytes()/4) // lanes without a row must not be the smallest
	for i := g.Rows; i < len(bound); i++ {
		bound[i] = positions
	}
	g.I(asm.VORPS, t, n, g.ConstU32s(bound...))
	g.FoldInt(asm.VPMINSD, 2, 3)
	g.I(asm.VMOVD, asm.At(scrReg, kernel.ScratchSmallest), asm.X(2))
	g.FoldInt(asm.VPMAXSD, 1, 2)
	g.I(asm.VMOVD, count, asm.X(1))
	g.Store32(asm.At(scrReg, kernel.ScratchLargest), count)
	g.Test(count, count)
}
