package vector

import (
	"errors"
	"fmt"
	"math/bits"
	"unsafe"

	"sandwich/microkernel/internal/arith"
	"sandwich/microkernel/internal/arm64/asm"
	"sandwich/microkernel/internal/kernel"
)

// maxRows is the largest AttentionSpec.Rows: each row needs a lane of the vectors of state, and
// four accumulators per panel.
const maxRows = 4

// unroll is the number of k-steps in an iteration of the inner loop: the lanes of a register of A.
const unroll = 4

// fused generates an attention kernel.
type fused struct {
	gen
	kernel.AttentionSpec
	columns int // panels of a register tile: as many as make sixteen accumulators
}

// Rows returns the largest number of rows of a kernel, or 0 without the dot product.
func (Generator) Rows(d kernel.Dot) int {
	if d == kernel.NoDot {
		return maxRows
	}
	return 0
}

// Sizes returns the memory that a kernel needs.
func (Generator) Sizes(s kernel.AttentionSpec) kernel.AttentionSizes {
	return kernel.AttentionSizes{Scratch: scalesAt(s) + 2*s.ScaleFloats()*4, Query: 4 * s.HeadDim}
}

// OpenBlock returns an error: kernels read blocks as they are cached.
func (Generator) OpenBlock(kernel.AttentionSpec) ([]byte, error) { return nil, errors.ErrUnsupported }

// Kernel returns the code of an attention kernel.
func (Generator) Kernel(s kernel.AttentionSpec) ([]byte, error) {
	switch {
	case s.Dot != kernel.NoDot:
		return nil, fmt.Errorf("attention kernel: neon has none for the dot product %s", s.Dot)
	case s.Rows < 1 || s.Rows > maxRows:
		return nil, fmt.Errorf("attention kernel: %d rows are outside 1 to %d", s.Rows, maxRows)
	case s.HeadDim < 1:
		return nil, fmt.Errorf("attention kernel: head dimension %d is not positive", s.HeadDim)
	}
	g := &fused{gen{asm.New(asm.Base)}, s, 1 << (bits.Len(uint(maxRows/s.Rows)) - 1)}
	g.emit()
	g.Ret()
	machine, err := g.Finish()
	if err != nil {
		return nil, fmt.Errorf("attention kernel %+v: %w", s, err)
	}
	return machine, nil
}

// scalesAt returns the offset in scratch of the widened scales of the keys; those of the values
// follow.
func scalesAt(s kernel.AttentionSpec) int { return kernel.ScratchScores + s.Rows*kernel.ScratchRow }

// dimsPerScale returns the dimensions of the scores that share scales.
func (g *fused) dimsPerScale() int {
	if g.Int8 {
		return arith.ScaleDims
	}
	return max(1, g.HeadDim)
}

// Offsets of the arguments.
const (
	offQ       = int(unsafe.Offsetof(kernel.AttentionArgs{}.Q))
	offState   = int(unsafe.Offsetof(kernel.AttentionArgs{}.State))
	offScratch = int(unsafe.Offsetof(kernel.AttentionArgs{}.Scratch))
	offKV      = int(unsafe.Offsetof(kernel.AttentionArgs{}.KV))
	offTable   = int(unsafe.Offsetof(kernel.AttentionArgs{}.Table))
	offBlocks  = int(unsafe.Offsetof(kernel.AttentionArgs{}.Blocks))
	offPitch   = int(unsafe.Offsetof(kernel.AttentionArgs{}.Pitch))
	offLast    = int(unsafe.Offsetof(kernel.AttentionArgs{}.Last))
	offScale   = int(unsafe.Offsetof(kernel.AttentionArgs{}.Scale))
	offAfter   = int(unsafe.Offsetof(kernel.AttentionArgs{}.After))
	offFactor  = int(unsafe.Offsetof(kernel.AttentionArgs{}.Factor))
	offSoftCap = int(unsafe.Offsetof(kernel.AttentionArgs{}.SoftCap))
)

// Registers of the fused kernel. Rows of A are at fA0 and the registers after it, panels of B at
// fB0 and after.
const (
	fState  = asm.X(1)
	fScr    = asm.X(2)
	fK      = asm.X(3)
	fV      = asm.X(4)
	fBlocks = asm.X(5)
	fTable  = asm.X(6)
	fCount  = asm.X(7)
	fPasses = asm.X(8)
	fOut    = asm.X(9)
	fAhead  = asm.X(10)
	fScale  = asm.X(11) // int8: scales of the running product
	fTmp    = asm.X(12)
	fTmp2   = asm.X(13)
	fA0     = asm.X(19)
	fB0     = asm.X(23)
)

func (g *fused) a(r int) asm.X       { return fA0 + asm.X(r) }
func (g *fused) b(c int) asm.X       { return fB0 + asm.X(c) }
func (g *fused) arg(x asm.X, at int) { g.I(asm.LDRX, x, nArgs, asm.Imm(at)) }

func (g *fused) emit() {
	g.arg(fState, offState)
	g.arg(fScr, offScratch)
	g.arg(fTable, offTable)
	g.arg(fBlocks, offBlocks)
	done, next := g.NewLabel(), g.NewLabel()
	g.Cmp(fBlocks, 0)
	g.BC(asm.LessOrEqual, done)
	g.Loop(fBlocks, func() {
		g.blockAddress(fK, 0)
		g.AddImm(fV, fK, positions*g.HeadDim*g.ElementBytes()+2*g.ScaleFloats())
		g.next()
		g.seen(next)
		g.widenScales()
		g.scores()
		g.adjustScores()
		g.softmaxRows()
		g.mergeSums()
		g.values()
		g.Bind(next)
		g.AddImm(fTable, fTable, 4)
	})
	g.Bind(done)
}

// next sets the prefetch pointer to the block of the next table entry, or to AttentionArgs.After
// at the end of the table.
func (g *fused) next() {
	last := g.NewLabel()
	g.arg(fAhead, offAfter)
	g.arg(fTmp, offLast)
	g.CmpX(fTable, fTmp)
	g.BC(asm.AboveOrEqual, last)
	g.blockAddress(fAhead, 1)
	g.Bind(last)
}

// blockAddress computes the address of the block whose id is `entry` entries after the current
// one.
func (g *fused) blockAddress(dst asm.X, entry int) {
	g.I(asm.LDRSW, dst, fTable, asm.Imm(4*entry))
	g.arg(fTmp2, offPitch)
	g.I(asm.MUL, dst, dst, fTmp2)
	g.arg(fTmp2, offKV)
	g.I(asm.ADD, dst, dst, fTmp2)
}

// seen stores how many positions of the block each row sees, decrements the remaining positions by
// a block, and branches to `none` if no row sees any.
func (g *fused) seen(none asm.Label) {
	left, n, t, block := asm.V(0), asm.V(1), asm.V(2), asm.V(3)
	g.I(asm.LDRQ, left, fState, asm.Imm(kernel.StateLeft))
	g.Splat(block, positions)
	g.Zero(n)
	g.I(asm.SMAX4S, n, n, left)
	g.I(asm.SMIN4S, n, n, block)
	if g.Window {
		g.skipped(n, block)
	}
	g.I(asm.STRQ, n, fScr, asm.Imm(kernel.ScratchSeen))
	g.I(asm.SUBV4S, left, left, block)
	g.I(asm.STRQ, left, fState, asm.Imm(kernel.StateLeft))
	var bound [16]byte // lanes without a row must not be the smallest
	for r := g.Rows; r < maxRows; r++ {
		bound[4*r] = positions
	}
	g.ConstQ(t, bound)
	g.I(asm.ORRV, t, t, n)
	g.I(asm.SMINV4S, t, t)
	g.I(asm.STRS, t, fScr, asm.Imm(kernel.ScratchSmallest))
	g.I(asm.SMAXV4S, n, n)
	g.I(asm.STRS, n, fScr, asm.Imm(kernel.ScratchLargest))
	g.I(asm.UMOVW, fCount, n, asm.Imm(0))
	g.CBZ(fCount, none)
}

// prefetch requests the next lines of the following block into L2.
func (g *fused) prefetch(lines int) {
	for i := range lines {
		g.I(asm.PRFM2, fAhead, asm.Imm(64*i))
	}
	if lines > 0 {
		g.AddImm(fAhead, fAhead, 64*lines)
	}
}

// product is a register tile: rows of A, k-major panels of B, `columns` panels wide. Accumulators
// are in the first registers, row by row, then the rows' elements of A, then rotating vectors of
// B.
type product struct {
	columns int
	value   bool // int8: scales are one for each k-step; otherwise one for each lane
	first   int  // int8: the first panel
}

func (g *fused) vectors(p product) int          { return p.columns * blockRegs }
func (g *fused) acc(p product, r, j int) asm.V  { return asm.V(r*g.vectors(p) + j) }
func (g *fused) element(p product, r int) asm.V { return asm.V(g.Rows*g.vectors(p) + r) }

func (g *fused) vectorOfB(p product, i, j int) asm.V {
	return asm.V(20 + (i*g.vectors(p)+j)%10)
}

// steps emits n k-steps, at most four, and advances the pointers.
func (g *fused) steps(p product, n int) {
	for r := range g.Rows {
		if n == unroll {
			g.I(asm.LDRQ, g.element(p, r), g.a(r), asm.Imm(0))
		} else {
			g.I(asm.LDRS, g.element(p, r), g.a(r), asm.Imm(0))
		}
		g.AddImm(g.a(r), g.a(r), 4*n)
	}
	for i := range n {
		for j := range g.vectors(p) {
			x := g.vectorOfB(p, i, j)
			g.loadB(p, x, i, j)
			for r := range g.Rows {
				g.I(asm.FMLAL, g.acc(p, r, j), x, g.element(p, r), asm.Imm(i))
			}
		}
	}
	for c := range p.columns {
		g.AddImm(g.b(c), g.b(c), n*arith.Lanes*g.ElementBytes())
	}
	if g.Int8 && p.value {
		g.AddImm(fScale, fScale, 4*n)
	}
	if n == unroll {
		g.prefetch(unroll * p.columns * arith.Lanes * g.ElementBytes() / 64)
	}
}

// loadB loads vector j of k-step i as float32.
func (g *fused) loadB(p product, x asm.V, i, j int) {
	from, at := g.b(j/blockRegs), (i*arith.Lanes+j%blockRegs*4)*g.ElementBytes()
	switch {
	case g.Int8:
		g.I(asm.LDRS, x, from, asm.Imm(at))
		g.I(asm.SSHLL8B, x, x, asm.Imm(0))
		g.I(asm.SSHLL4H, x, x, asm.Imm(0))
		g.I(asm.SCVTF, x, x)
		if p.value {
			set := (p.first+j/blockRegs)*arith.Lanes/arith.ScaleDims - p.first*arith.Lanes/arith.ScaleDims
			g.I(asm.LDRS, nConst, fScale, asm.Imm(4*(positions*set+i)))
			g.I(asm.FMULL, x, x, nConst, asm.Imm(0))
			return
		}
		g.I(asm.LDRQ, nConst, fScale, asm.Imm(16*j))
		g.I(asm.FMUL, x, x, nConst)
	case g.F16:
		g.I(asm.LDRD, x, from, asm.Imm(at))
		g.I(asm.FCVTL, x, x)
	default:
		g.I(asm.LDRQ, x, from, asm.Imm(at))
	}
}

func (g *fused) clear(p product) {
	for i := range g.Rows * g.vectors(p) {
		g.Zero(asm.V(i))
	}
}

// scores computes the products of the rows with the keys up to the last one that any row sees into
// scratch: whole passes, one chain over the head dimension each.
func (g *fused) scores() {
	panel := arith.Lanes * g.HeadDim * g.ElementBytes()
	p := product{columns: g.columns}
	g.AddImm(fPasses, fCount, arith.Lanes*g.columns-1)
	g.I(asm.LSRI, fPasses, fPasses, asm.Imm(bits.Len(uint(arith.Lanes*g.columns))-1))
	for c := range g.columns {
		g.AddImm(g.b(c), fK, c*panel)
	}
	g.AddImm(fOut, fScr, kernel.ScratchScores)
	g.Loop(fPasses, func() {
		g.clear(p)
		g.arg(g.a(0), offQ)
		for r := 1; r < g.Rows; r++ {
			g.AddImm(g.a(r), g.a(r-1), 4*g.HeadDim)
		}
		for first := 0; first < g.HeadDim; first += g.dimsPerScale() {
			if g.Int8 {
				at := scalesAt(g.AttentionSpec) - kernel.ScratchScores + 4*positions*(first/arith.ScaleDims)
				g.AddImm(fScale, fOut, at)
			}
			g.overDims(p, min(g.HeadDim, first+g.dimsPerScale())-first)
		}
		for r := range g.Rows {
			for j := range g.vectors(p) {
				g.I(asm.STRQ, g.acc(p, r, j), fOut, asm.Imm(r*kernel.ScratchRow+16*j))
			}
		}
		g.AddImm(fOut, fOut, 64*g.columns)
		for c := range g.columns {
			g.AddImm(g.b(c), g.b(c), (g.columns-1)*panel)
		}
	})
}

// overDims emits n k-steps of the scores.
func (g *fused) overDims(p product, n int) {
	if turns := n / unroll; turns > 0 {
		g.MovImm(fTmp, turns)
		g.Loop(fTmp, func() { g.steps(p, unroll) })
	}
	for range n % unroll {
		g.steps(p, 1)
	}
}

// values computes the products of the probabilities with the values, one chain over the positions
// that any row sees, and merges them into the running output.
func (g *fused) values() {
	panels := g.PaddedDim() / arith.Lanes
	g.AddImm(fOut, fState, kernel.StateOut)
	if g.Int8 {
		for first := 0; first < panels; first += g.columns {
			g.valuePass(product{columns: min(g.columns, panels-first), value: true, first: first})
		}
		return
	}
	if whole := panels / g.columns; whole > 0 {
		g.MovImm(fPasses, whole)
		g.Loop(fPasses, func() { g.valuePass(product{columns: g.columns, value: true}) })
	}
	if rest := panels % g.columns; rest > 0 {
		g.valuePass(product{columns: rest, value: true})
	}
}

func (g *fused) valuePass(p product) {
	panel := arith.Lanes * positions * g.ElementBytes()
	g.clear(p)
	for c := range p.columns {
		g.AddImm(g.b(c), fV, c*panel)
	}
	for r := range g.Rows {
		g.AddImm(g.a(r), fScr, kernel.ScratchScores+r*kernel.ScratchRow)
	}
	if g.Int8 {
		set := p.first * arith.Lanes / arith.ScaleDims
		g.AddImm(fScale, fScr, scalesAt(g.AttentionSpec)+4*(g.ScaleFloats()+positions*set))
	}
	rest, done := g.NewLabel(), g.NewLabel()
	g.I(asm.LDRW, fCount, fScr, asm.Imm(kernel.ScratchLargest))
	g.I(asm.LSRI, fTmp, fCount, asm.Imm(2))
	g.CBZ(fTmp, rest)
	g.Loop(fTmp, func() { g.steps(p, unroll) })
	g.Bind(rest)
	g.I(asm.LSLI, fCount, fCount, asm.Imm(62))
	g.I(asm.LSRI, fCount, fCount, asm.Imm(62))
	g.CBZ(fCount, done)
	g.Loop(fCount, func() { g.steps(p, 1) })
	g.Bind(done)
	g.mergeRows(p)
	g.AddImm(fV, fV, p.columns*panel)
	g.AddImm(fOut, fOut, 64*p.columns)
}

// mergeRows merges the accumulators of a value pass into the output rows: out = out*old + (acc +
// 0)*new.
func (g *fused) mergeRows(p product) {
	oldMul, newMul, zero, out := asm.V(24), asm.V(25), asm.V(26), asm.V(27)
	g.Zero(zero)
	g.MovImm(fTmp2, arith.NegInfBits)
	for r := range g.Rows {
		skip := g.NewLabel()
		g.I(asm.LDRW, fTmp, fScr, asm.Imm(kernel.ScratchMax+4*r))
		g.CmpX(fTmp, fTmp2)
		g.BC(asm.Equal, skip)
		g.I(asm.LDRS, oldMul, fScr, asm.Imm(kernel.ScratchOldMul+4*r))
		g.I(asm.LDRS, newMul, fScr, asm.Imm(kernel.ScratchNewMul+4*r))
		for j := range g.vectors(p) {
			acc, at := g.acc(p, r, j), asm.Imm(4*r*g.PaddedDim()+16*j)
			g.I(asm.FADD, acc, acc, zero)
			g.I(asm.FMULL, acc, acc, newMul, asm.Imm(0))
			g.I(asm.LDRQ, out, fOut, at)
			g.I(asm.FMLAL, acc, out, oldMul, asm.Imm(0))
			g.I(asm.STRQ, acc, fOut, at)
		}
		g.Bind(skip)
	}
}
