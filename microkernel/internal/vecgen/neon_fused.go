package vecgen

import (
	"fmt"
	"math/bits"

	a64 "sandwich/microkernel/internal/arm64/asm"
)

// NEONMaxRows is the largest Fused.Rows on arm64: a lane of one register each, and four
// accumulators for a panel.
const NEONMaxRows = 4

// neonUnroll is the k-steps in a turn of the inner loop: as many as there are lanes in a register
// of A.
const neonUnroll = 4

// neonFused emits a fused attention kernel for arm64, step by step what fused does for x86-64.
type neonFused struct {
	neonGen
	Fused
	columns int // panels of a register tile: as many as make sixteen accumulators
}

// GenerateFusedNEON returns the code of a fused attention kernel.
func GenerateFusedNEON(f Fused) ([]byte, error) {
	if f.Rows < 1 || f.Rows > NEONMaxRows || f.HeadDim < 1 || f.Dot != FMA {
		return nil, fmt.Errorf("attention kernel: %d rows of %d are outside 1 to %d rows", f.Rows,
			f.HeadDim, NEONMaxRows)
	}
	g := &neonFused{neonGen{a64.New(a64.Base)}, f, 1 << (bits.Len(uint(NEONMaxRows/f.Rows)) - 1)}
	g.emit()
	g.Ret()
	code, err := g.Finish()
	if err != nil {
		return nil, fmt.Errorf("attention kernel %+v: %w", f, err)
	}
	return code, nil
}

// Registers of the fused kernel. Rows of A are at fA0 and the registers after it, panels of B at
// fB0 and after.
const (
	fState  = a64.X(1)
	fScr    = a64.X(2)
	fK      = a64.X(3)
	fV      = a64.X(4)
	fBlocks = a64.X(5)
	fTable  = a64.X(6)
	fCount  = a64.X(7)
	fPasses = a64.X(8)
	fOut    = a64.X(9)
	fAhead  = a64.X(10)
	fScale  = a64.X(11) // int8: scales of the running product
	fTmp    = a64.X(12)
	fTmp2   = a64.X(13)
	fA0     = a64.X(19)
	fB0     = a64.X(23)
)

func (g *neonFused) a(r int) a64.X { return fA0 + a64.X(r) }
func (g *neonFused) b(c int) a64.X { return fB0 + a64.X(c) }

func (g *neonFused) arg(x a64.X, at int) { g.I(a64.LDRX, x, nArgs, a64.Imm(at)) }

func (g *neonFused) emit() {
	g.arg(fState, offState)
	g.arg(fScr, offScratch)
	g.arg(fTable, offTable)
	g.arg(fBlocks, offBlocks)
	done, next := g.NewLabel(), g.NewLabel()
	g.Cmp(fBlocks, 0)
	g.BC(a64.LessOrEqual, done)
	g.Loop(fBlocks, func() {
		g.blockAddress(fK, 0)
		g.AddImm(fV, fK, positions*g.HeadDim*g.size()+2*g.scaleFloats())
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

// next sets the prefetch pointer to the block that the table names after this one, or to the one
// that the caller wants where the table ends.
func (g *neonFused) next() {
	last := g.NewLabel()
	g.arg(fAhead, offAfter)
	g.arg(fTmp, offAhead)
	g.CmpX(fTable, fTmp)
	g.BC(a64.AboveOrEqual, last)
	g.blockAddress(fAhead, 1)
	g.Bind(last)
}

// blockAddress computes the address of the block whose id stands `entry` places behind the current
// one.
func (g *neonFused) blockAddress(dst a64.X, entry int) {
	g.I(a64.LDRSW, dst, fTable, a64.Imm(4*entry))
	g.arg(fTmp2, offPitch)
	g.I(a64.MUL, dst, dst, fTmp2)
	g.arg(fTmp2, offKV)
	g.I(a64.ADD, dst, dst, fTmp2)
}

// seen stores how many positions of the block each row sees, takes a block off what is left, and
// goes to `none` where no row sees any.
func (g *neonFused) seen(none a64.Label) {
	left, n, t, block := a64.V(0), a64.V(1), a64.V(2), a64.V(3)
	g.I(a64.LDRQ, left, fState, a64.Imm(StateLeft))
	g.Splat(block, positions)
	g.Zero(n)
	g.I(a64.SMAX4S, n, n, left)
	g.I(a64.SMIN4S, n, n, block)
	if g.Window {
		g.skipped(n, block)
	}
	g.I(a64.STRQ, n, fScr, a64.Imm(scrSeen))
	g.I(a64.SUBV4S, left, left, block)
	g.I(a64.STRQ, left, fState, a64.Imm(StateLeft))
	var bound [16]byte // lanes without a row must not be the smallest
	for r := g.Rows; r < NEONMaxRows; r++ {
		bound[4*r] = positions
	}
	g.ConstQ(t, bound)
	g.I(a64.ORRV, t, t, n)
	g.I(a64.SMINV4S, t, t)
	g.I(a64.STRS, t, fScr, a64.Imm(scrSmallest))
	g.I(a64.SMAXV4S, n, n)
	g.I(a64.STRS, n, fScr, a64.Imm(scrLargest))
	g.I(a64.UMOVW, fCount, n, a64.Imm(0))
	g.CBZ(fCount, none)
}

// prefetch asks for the next lines of the block that comes after this one, into L2.
func (g *neonFused) prefetch(lines int) {
	for i := range lines {
		g.I(a64.PRFM2, fAhead, a64.Imm(64*i))
	}
	if lines > 0 {
		g.AddImm(fAhead, fAhead, 64*lines)
	}
}

// neonProduct is a register tile: rows of A, k-major panels of B, `columns` panels wide.
// Accumulators come first, row by row, then the rows' elements of A, then vectors of B in turn.
type neonProduct struct {
	columns int
	value   bool // int8: scales are one for each k-step; otherwise one for each lane
	first   int  // int8: the first panel
}

func (g *neonFused) vectors(p neonProduct) int          { return p.columns * blockRegs }
func (g *neonFused) acc(p neonProduct, r, j int) a64.V  { return a64.V(r*g.vectors(p) + j) }
func (g *neonFused) element(p neonProduct, r int) a64.V { return a64.V(g.Rows*g.vectors(p) + r) }
func (g *neonFused) vectorOfB(p neonProduct, i, j int) a64.V {
	return a64.V(20 + (i*g.vectors(p)+j)%10)
}

// steps emits n k-steps, four at the most, and moves the pointers behind them.
func (g *neonFused) steps(p neonProduct, n int) {
	for r := range g.Rows {
		if n == neonUnroll {
			g.I(a64.LDRQ, g.element(p, r), g.a(r), a64.Imm(0))
		} else {
			g.I(a64.LDRS, g.element(p, r), g.a(r), a64.Imm(0))
		}
		g.AddImm(g.a(r), g.a(r), 4*n)
	}
	for i := range n {
		for j := range g.vectors(p) {
			x := g.vectorOfB(p, i, j)
			g.loadB(p, x, i, j)
			for r := range g.Rows {
				g.I(a64.FMLAL, g.acc(p, r, j), x, g.element(p, r), a64.Imm(i))
			}
		}
	}
	for c := range p.columns {
		g.AddImm(g.b(c), g.b(c), n*group*g.size())
	}
	if g.Int8 && p.value {
		g.AddImm(fScale, fScale, 4*n)
	}
	if n == neonUnroll {
		g.prefetch(neonUnroll * p.columns * group * g.size() / 64)
	}
}

// loadB loads vector j of k-step i as float32.
func (g *neonFused) loadB(p neonProduct, x a64.V, i, j int) {
	from, at := g.b(j/blockRegs), (i*group+j%blockRegs*4)*g.size()
	switch {
	case g.Int8:
		g.I(a64.LDRS, x, from, a64.Imm(at))
		g.I(a64.SSHLL8B, x, x, a64.Imm(0))
		g.I(a64.SSHLL4H, x, x, a64.Imm(0))
		g.I(a64.SCVTF, x, x)
		if p.value {
			set := (p.first+j/blockRegs)*group/scaleDims - p.first*group/scaleDims
			g.I(a64.LDRS, nConst, fScale, a64.Imm(4*(positions*set+i)))
			g.I(a64.FMULL, x, x, nConst, a64.Imm(0))
			return
		}
		g.I(a64.LDRQ, nConst, fScale, a64.Imm(16*j))
		g.I(a64.FMUL, x, x, nConst)
	case g.F16:
		g.I(a64.LDRD, x, from, a64.Imm(at))
		g.I(a64.FCVTL, x, x)
	default:
		g.I(a64.LDRQ, x, from, a64.Imm(at))
	}
}

func (g *neonFused) clear(p neonProduct) {
	for i := range g.Rows * g.vectors(p) {
		g.Zero(a64.V(i))
	}
}

// scores computes the products of the rows with the keys up to the last one that any row sees, in
// whole passes, one chain over the head dimension each, into scratch.
func (g *neonFused) scores() {
	panel := group * g.HeadDim * g.size()
	p := neonProduct{columns: g.columns}
	g.AddImm(fPasses, fCount, group*g.columns-1)
	g.I(a64.LSRI, fPasses, fPasses, a64.Imm(bits.Len(uint(group*g.columns))-1))
	for c := range g.columns {
		g.AddImm(g.b(c), fK, c*panel)
	}
	g.AddImm(fOut, fScr, scrP)
	g.Loop(fPasses, func() {
		g.clear(p)
		g.arg(g.a(0), offQ)
		for r := 1; r < g.Rows; r++ {
			g.AddImm(g.a(r), g.a(r-1), 4*g.HeadDim)
		}
		for first := 0; first < g.HeadDim; first += g.sameScale() {
			if g.Int8 {
				g.AddImm(fScale, fOut, g.scaleAt()-scrP+4*positions*(first/scaleDims))
			}
			g.overDims(p, min(g.HeadDim, first+g.sameScale())-first)
		}
		for r := range g.Rows {
			for j := range g.vectors(p) {
				g.I(a64.STRQ, g.acc(p, r, j), fOut, a64.Imm(r*rowP+16*j))
			}
		}
		g.AddImm(fOut, fOut, 64*g.columns)
		for c := range g.columns {
			g.AddImm(g.b(c), g.b(c), (g.columns-1)*panel)
		}
	})
}

// overDims emits n k-steps of the scores.
func (g *neonFused) overDims(p neonProduct, n int) {
	if turns := n / neonUnroll; turns > 0 {
		g.MovImm(fTmp, turns)
		g.Loop(fTmp, func() { g.steps(p, neonUnroll) })
	}
	for range n % neonUnroll {
		g.steps(p, 1)
	}
}

// values computes the products of the probabilities with the values, one chain over the positions
// that any row sees, and merges them into the running output.
func (g *neonFused) values() {
	panels := g.paddedDim() / group
	g.AddImm(fOut, fState, StateOut)
	if g.Int8 {
		for first := 0; first < panels; first += g.columns {
			g.valuePass(neonProduct{columns: min(g.columns, panels-first), value: true, first: first})
		}
		return
	}
	if whole := panels / g.columns; whole > 0 {
		g.MovImm(fPasses, whole)
		g.Loop(fPasses, func() { g.valuePass(neonProduct{columns: g.columns, value: true}) })
	}
	if rest := panels % g.columns; rest > 0 {
		g.valuePass(neonProduct{columns: rest, value: true})
	}
}

func (g *neonFused) valuePass(p neonProduct) {
	panel := group * positions * g.size()
	g.clear(p)
	for c := range p.columns {
		g.AddImm(g.b(c), fV, c*panel)
	}
	for r := range g.Rows {
		g.AddImm(g.a(r), fScr, scrP+r*rowP)
	}
	if g.Int8 {
		g.AddImm(fScale, fScr, g.scaleAt()+4*(g.scaleFloats()+positions*(p.first*group/scaleDims)))
	}
	rest, done := g.NewLabel(), g.NewLabel()
	g.I(a64.LDRW, fCount, fScr, a64.Imm(scrLargest))
	g.I(a64.LSRI, fTmp, fCount, a64.Imm(2))
	g.CBZ(fTmp, rest)
	g.Loop(fTmp, func() { g.steps(p, neonUnroll) })
	g.Bind(rest)
	g.I(a64.LSLI, fCount, fCount, a64.Imm(62))
	g.I(a64.LSRI, fCount, fCount, a64.Imm(62))
	g.CBZ(fCount, done)
	g.Loop(fCount, func() { g.steps(p, 1) })
	g.Bind(done)
	g.mergeRows(p)
	g.AddImm(fV, fV, p.columns*panel)
	g.AddImm(fOut, fOut, 64*p.columns)
}

// mergeRows folds the accumulators of a value pass into the output rows: out = out*old + (acc +
// 0)*new.
func (g *neonFused) mergeRows(p neonProduct) {
	oldMul, newMul, zero, out := a64.V(24), a64.V(25), a64.V(26), a64.V(27)
	g.Zero(zero)
	g.MovImm(fTmp2, negInfBits)
	for r := range g.Rows {
		skip := g.NewLabel()
		g.I(a64.LDRW, fTmp, fScr, a64.Imm(scrMax+4*r))
		g.CmpX(fTmp, fTmp2)
		g.BC(a64.Equal, skip)
		g.I(a64.LDRS, oldMul, fScr, a64.Imm(scrOldMul+4*r))
		g.I(a64.LDRS, newMul, fScr, a64.Imm(scrNewMul+4*r))
		for j := range g.vectors(p) {
			acc, at := g.acc(p, r, j), a64.Imm(4*r*g.paddedDim()+16*j)
			g.I(a64.FADD, acc, acc, zero)
			g.I(a64.FMULL, acc, acc, newMul, a64.Imm(0))
			g.I(a64.LDRQ, out, fOut, at)
			g.I(a64.FMLAL, acc, out, oldMul, a64.Imm(0))
			g.I(a64.STRQ, acc, fOut, at)
		}
		g.Bind(skip)
	}
}
