package vecgen

import (
	"fmt"
	"math/bits"
	"unsafe"

	"sandwich/microkernel/internal/asm"
)

// Fused describes a fused attention kernel: Rows query vectors against blocks of 64 positions of one KV head, scores,
// softmax, value product and the merge into the running state in one call.
type Fused struct {
	Rows    int  // query vectors, 1 to MaxRows(level)
	HeadDim int  // elements of a query vector
	F16     bool // elements of K and V: half precision ...
	Int8    bool // ... or int8 with scales (fused8.go); else single precision
}

// FusedArgs is what the trampoline hands to a fused kernel.
type FusedArgs struct {
	Q, State, Scratch, KV, Table unsafe.Pointer
	Blocks                       int            // how many entries of Table to go through
	Pitch                        int            // bytes between the blocks of consecutive ids
	Last                         unsafe.Pointer // last entry of Table that there is, behind Blocks too: what is prefetched
	Scale                        float32
}

const (
	offQ = 8 * iota
	offState
	offScratch
	offKV
	offTable
	offBlocks
	offPitch
	offAhead
	offScale
)

// A state has sixteen entries each of the running maxima, the running sums and the positions still to be seen (int32),
// then the output rows. Before the first block: -Inf, 0, the positions each row sees, and zeros.
const (
	StateRows   = 16 // entries
	StateMax    = 0
	StateSum    = 64
	StateLeft   = 128
	StateOut    = 192
	scrSeen     = 0 // scratch: positions of the block that a row sees
	scrOldMul   = 64
	scrNewMul   = 128
	scrMax      = 192
	scrSum      = 256
	scrLargest  = 320 // the largest of scrSeen, and the smallest of the rows that there are
	scrSmallest = 324
	scrP        = 384 // scores, then probabilities: [rows][64]
	positions   = 64  // of a block
	rowP        = 4 * positions
	maxColumns  = 4 // panels of a register tile
	unroll      = 8 // k-steps in a turn of the inner loop
)

// MaxRows is the largest Fused.Rows at a level: what fits the registers beside two panels of columns, or one with AVX2.
func MaxRows(level asm.Level) int {
	if level == asm.AVX512 {
		return 12
	}
	return 6
}

// PaddedDim is the head dimension in whole panels: the length of an output row.
func (f Fused) PaddedDim() int { return (f.HeadDim + group - 1) / group * group }

// StateBytes is the size of a state, ScratchBytes that of the scratch of one call.
func (f Fused) StateBytes() int { return StateOut + 4*f.Rows*f.PaddedDim() }

// ScratchBytes: see StateBytes.
func (f Fused) ScratchBytes() int { return f.scaleAt() + 2*f.scaleFloats()*4 }

func (f Fused) size() int {
	switch {
	case f.Int8:
		return 1
	case f.F16:
		return 2
	}
	return 4
}

// panels is how many panels of sixteen columns a register tile holds: as many as fit, so that few rows still have enough
// independent chains to hide the latency of the multiply-add.
func (g *gen) panels(rows int) int {
	registers := 16
	if g.wide {
		registers = 32
	}
	p := 1
	for p < maxColumns && rows*2*p*g.parts+max(2*p*g.parts+1, 3) <= registers {
		p *= 2
	}
	return p
}

// GenerateFused returns the code of a fused attention kernel.
func GenerateFused(level asm.Level, f Fused) ([]byte, error) {
	if f.Rows < 1 || f.Rows > MaxRows(level) || f.HeadDim < 1 {
		return nil, fmt.Errorf("attention kernel: %d rows of %d are outside 1 to %d rows", f.Rows, f.HeadDim, MaxRows(level))
	}
	g := &fused{gen: newGen(level), Fused: f}
	g.emit()
	code, err := g.finish()
	if err != nil {
		return nil, fmt.Errorf("attention kernel %+v: %w", f, err)
	}
	return code, nil
}

type fused struct {
	*gen
	Fused
}

// Registers of the fused kernel.
const (
	qReg     = asm.RSI
	stateReg = asm.RDX
	scrReg   = asm.RCX
	kReg     = asm.R8
	vReg     = asm.R9
	blocks   = asm.R10
	table    = asm.R11
	aPtr     = asm.RAX
	bPtr     = asm.RBX
	count    = asm.R12
	ahead    = asm.R13 // what is prefetched
	passes   = asm.R14
	outPtr   = asm.R15
)

func (g *fused) emit() {
	g.Mov(qReg, asm.At(args, offQ))
	g.Mov(stateReg, asm.At(args, offState))
	g.Mov(scrReg, asm.At(args, offScratch))
	g.Mov(table, asm.At(args, offTable))
	g.Mov(blocks, asm.At(args, offBlocks))
	done, next := g.NewLabel(), g.NewLabel()
	g.Test(blocks, blocks)
	g.Jcc(asm.LessOrEqual, done)
	loop := g.Here()
	g.blockAddress(kReg, 0)
	g.Lea(vReg, asm.At(kReg, positions*g.HeadDim*g.size()+2*g.scaleFloats()))
	g.next()
	g.seen()
	g.Jcc(asm.Zero, next)
	g.widenScales()
	g.scores()
	g.softmaxRows()
	g.mergeSums()
	g.values()
	g.Bind(next)
	g.Add(table, asm.Imm32(4))
	g.Dec(blocks)
	g.Jcc(asm.NotZero, loop)
	g.Bind(done)
}

// next sets the prefetch pointer to the block that the table names after this one, or to this one where the table ends.
func (g *fused) next() {
	last := g.NewLabel()
	g.Mov(ahead, kReg)
	g.Mov(count, asm.At(args, offAhead))
	g.Cmp(table, count)
	g.Jcc(asm.AboveOrEqual, last)
	g.blockAddress(ahead, 1)
	g.Bind(last)
}

// blockAddress computes the address of the block whose id stands `entry` places behind the current one. It clobbers count.
func (g *fused) blockAddress(dst asm.Reg, entry int) {
	g.MovSXD(dst, asm.At(table, 4*entry))
	g.Mov(count, asm.At(args, offPitch))
	g.IMul(dst, count)
	g.Add(dst, asm.At(args, offKV))
}

// seen stores how many positions of the block each row sees, takes a block off what is left, and leaves the largest of
// them in count with the flags set on it.
func (g *fused) seen() {
	left, n, t := g.v(0), g.v(1), g.v(2)
	g.I(asm.VMOVUPS, left, asm.At(stateReg, StateLeft))
	g.I(asm.VXORPS, n, n, n)
	g.I(asm.VPMAXSD, n, n, left)
	g.I(asm.VPMINSD, n, n, g.splat(positions))
	g.I(asm.VMOVUPS, asm.At(scrReg, scrSeen), n)
	g.I(asm.VPSUBD, t, left, g.splat(positions))
	g.I(asm.VMOVUPS, asm.At(stateReg, StateLeft), t)
	bound := make([]uint32, g.v(0).Bytes()/4) // lanes without a row must not be the smallest
	for i := g.Rows; i < len(bound); i++ {
		bound[i] = positions
	}
	g.I(asm.VORPS, t, n, g.ConstU32s(bound...))
	g.foldInt(asm.VPMINSD, 2, 3)
	g.I(asm.VMOVD, asm.At(scrReg, scrSmallest), asm.X(2))
	g.foldInt(asm.VPMAXSD, 1, 2)
	g.I(asm.VMOVD, count, asm.X(1))
	g.Store32(asm.At(scrReg, scrLargest), count)
	g.Test(count, count)
}

// product is a register tile: rows of A, k-major panels of B, `columns` panels wide.
type product struct {
	columns     int // panels
	panelStride int // bytes between panels of B
	rowStride   int // bytes between rows of A
	lines       int // cache lines of the next block to prefetch for every `unroll` k-steps
	scale       int8Scale
}

// step emits k-step i of the tile: every row's element of A times the panels' elements of B.
func (g *fused) step(p product, i int) {
	vectors := p.columns * g.parts
	first := g.Rows * vectors // registers: accumulators, the row of B, an element of A
	width := 8 * (3 - g.parts) * g.size()
	for j := range vectors {
		m := asm.At(bPtr, j/g.parts*p.panelStride+j%g.parts*width+i*group*g.size())
		switch {
		case g.Int8:
			g.loadInt8(p, i, j, first, m)
		case g.F16:
			g.I(asm.VCVTPH2PS, g.v(first+j), m)
		default:
			g.I(asm.VMOVUPS, g.v(first+j), m)
		}
	}
	for r := range g.Rows {
		a := asm.At(aPtr, r*p.rowStride+4*i)
		if g.embeds(p) {
			for j := range vectors {
				g.I(asm.VFMADD231PS, g.v(r*vectors+j), g.v(first+j), a.Bcast())
			}
			continue
		}
		element := g.v(first + vectors)
		g.I(asm.VBROADCASTSS, element, a)
		for j := range vectors {
			g.I(asm.VFMADD231PS, g.v(r*vectors+j), element, g.v(first+j))
		}
	}
}

// embeds says whether each multiply-add repeats the element of A itself: one instruction less for every two lets the core look further
// ahead while lines are on their way. Elements that need no widening leave no room for the additional loads.
func (g *fused) embeds(p product) bool { return g.wide && g.size() < 4 && p.columns <= 2 }

// steps emits n k-steps and moves the pointers behind them.
func (g *fused) steps(p product, n int) {
	for i := range n {
		if n == unroll {
			g.prefetchPart(p, i)
		}
		g.step(p, i)
	}
	g.Add(bPtr, asm.Imm32(int32(n*group*g.size())))
	g.Add(aPtr, asm.Imm32(int32(4*n)))
	if n == unroll && p.lines > 0 {
		g.Add(ahead, asm.Imm32(int32(64*p.lines)))
	}
}

// prefetchPart asks for what k-step i of a turn has to: its share of the lines of the next block, and the lines of this one that
// come some k-steps later.
func (g *fused) prefetchPart(p product, i int) {
	for l := p.lines * i / unroll; l < p.lines*(i+1)/unroll; l++ {
		g.Prefetch(asm.T1, asm.At(ahead, 64*l))
	}
	if row := group * g.size(); g.Rows <= nearRows && i*row%64 == 0 {
		for c := range p.columns {
			g.Prefetch(asm.T0, asm.At(bPtr, c*p.panelStride+i*row+nearBytes))
		}
	}
}

// Prefetches into L2 are dropped when too many reads are under way, and a load that then goes to memory stalls everything behind
// it: up to nearRows rows, what memory limits, lines are asked for again shortly before they are needed.
const (
	nearRows  = 8
	nearBytes = 512
)

// prefetch asks for the next lines of the block that comes after this one, into L2: from there it is quick enough, and
// a block ahead would crowd the L1 cache.
func (g *fused) prefetch(lines int) {
	for i := range lines {
		g.Prefetch(asm.T1, asm.At(ahead, 64*i))
	}
	if lines > 0 {
		g.Add(ahead, asm.Imm32(int32(64*lines)))
	}
}

// The prefetches of a block are spread evenly over its time, since only so many reads can be under way: the products
// take theirs with each turn of the loop, the softmax those that are left, divided among its rows.

// linesPerTurn is the share of one turn of a product.
func (g *fused) linesPerTurn(columns int) int {
	own := float64(unroll*columns*group*g.size()) / 64
	own *= float64(g.lines()) / float64(g.lines()-4*g.scaleFloats()/64) // with its part of the scales
	return int(own*g.productShare() + 0.5)
}

// lines is a block of keys and one of values in cache lines.
func (g *fused) lines() int {
	return (positions*(g.HeadDim+g.PaddedDim())*g.size() + 4*g.scaleFloats()) / 64
}

// productShare is how much of a block's time the products take, counted in vector instructions: widening and multiplying keys and
// values, against the softmax and the merge of each row.
func (g *fused) productShare() float64 {
	rows, dim, widen := float64(g.Rows), float64(g.HeadDim), 2.0
	if g.Int8 {
		widen = 3
	}
	products := dim * (widen + rows) * 2 * positions / group
	rest := rows*(80+dim/4) + 300
	return products / (products + rest)
}

// linesPerRow is the share of one row of the softmax.
func (g *fused) linesPerRow() int {
	total := g.lines()
	turns := func(panels, k int) {
		for wide := g.panels(g.Rows); panels > 0; panels -= wide {
			total -= k / unroll * g.linesPerTurn(min(panels, wide))
		}
	}
	turns(positions/group, g.HeadDim)
	turns(g.PaddedDim()/group, positions)
	return max(0, (total+g.Rows-1)/g.Rows)
}

func (g *fused) clear(p product) {
	for i := range g.Rows * p.columns * g.parts {
		g.zero(i)
	}
}

// overPasses runs pass for `panels` panels, as many at a time as the tile holds; only the last pass may be narrower. Where the
// code of a pass depends on its first panel, each is emitted.
func (g *fused) overPasses(panels, columns int, pass func(first, columns int)) {
	if g.Int8 {
		for first := 0; first < panels; first += columns {
			pass(first, min(columns, panels-first))
		}
		return
	}
	if whole := panels / columns; whole > 0 {
		g.MovImm(passes, uint64(whole))
		g.loopPasses(func() { pass(0, columns) })
	}
	if rest := panels % columns; rest > 0 {
		pass(panels-rest, rest)
	}
}

func (g *fused) loopPasses(pass func()) {
	loop := g.Here()
	pass()
	g.Dec(passes)
	g.Jcc(asm.NotZero, loop)
}

// scores computes the products of the rows with the keys up to the last one that any row sees, in whole passes, one chain
// over the head dimension each, into scratch.
func (g *fused) scores() {
	panel := group * g.HeadDim * g.size()
	columns := g.panels(g.Rows)
	g.Mov32(passes, asm.At(scrReg, scrLargest))
	g.Add(passes, asm.Imm32(int32(group*columns-1)))
	g.Shr(passes, uint8(bits.Len(uint(group*columns))-1))
	g.Mov(bPtr, kReg)
	g.Lea(outPtr, asm.At(scrReg, scrP))
	g.loopPasses(func() {
		p := product{columns: columns, panelStride: panel, rowStride: 4 * g.HeadDim, lines: g.linesPerTurn(columns)}
		g.clear(p)
		g.Mov(aPtr, qReg)
		for first := 0; first < g.HeadDim; first += g.sameScale() {
			p.scale = int8Scale{set: first / scaleDims}
			g.overDims(p, min(g.HeadDim, first+g.sameScale())-first)
		}
		vectors := columns * g.parts
		for r := range g.Rows {
			for j := range vectors {
				g.I(asm.VMOVUPS, asm.At(outPtr, r*rowP+j*g.v(0).Bytes()), g.v(r*vectors+j))
			}
		}
		g.Add(outPtr, asm.Imm32(int32(64*columns)))
		g.Add(bPtr, asm.Imm32(int32((columns-1)*panel)))
	})
}

// overDims emits n k-steps of the scores.
func (g *fused) overDims(p product, n int) {
	if turns := n / unroll; turns > 0 {
		g.MovImm(count, uint64(turns))
		g.Align(16)
		loop := g.Here()
		g.steps(p, unroll)
		g.Dec(count)
		g.Jcc(asm.NotZero, loop)
	}
	for range n % unroll {
		g.steps(p, 1)
	}
}

// values computes the products of the probabilities with the values, one chain over the positions that any row sees, and
// merges them into the running output.
func (g *fused) values() {
	panel := group * positions * g.size()
	g.Lea(outPtr, asm.At(stateReg, StateOut))
	g.overPasses(g.PaddedDim()/group, g.panels(g.Rows), func(first, columns int) {
		p := product{columns: columns, panelStride: panel, rowStride: rowP, lines: g.linesPerTurn(columns)}
		p.scale = int8Scale{value: true, set: first}
		g.clear(p)
		g.Mov(bPtr, vReg)
		g.Lea(aPtr, asm.At(scrReg, scrP))
		g.Mov32(count, asm.At(scrReg, scrLargest))
		rest, done := g.NewLabel(), g.NewLabel()
		g.Sub(count, asm.Imm32(unroll))
		g.Jcc(asm.Less, rest)
		g.Align(16)
		loop := g.Here()
		g.steps(p, unroll)
		g.Sub(count, asm.Imm32(unroll))
		g.Jcc(asm.GreaterEqual, loop)
		g.Bind(rest)
		g.Add(count, asm.Imm32(unroll))
		g.Jcc(asm.Zero, done)
		one := g.Here()
		g.steps(p, 1)
		g.Dec(count)
		g.Jcc(asm.NotZero, one)
		g.Bind(done)
		g.mergeRows(columns)
		g.Add(vReg, asm.Imm32(int32(columns*panel)))
		g.Add(outPtr, asm.Imm32(int32(64*columns)))
	})
}

// mergeRows folds the accumulators of a value pass into the output rows: out = out*old + (acc + 0)*new.
func (g *fused) mergeRows(columns int) {
	vectors := columns * g.parts
	first := g.Rows * vectors
	oldMul, newMul, zero := g.v(first), g.v(first+1), g.v(first+2)
	g.zero(first + 2)
	for r := range g.Rows {
		skip := g.NewLabel()
		g.MovSXD(aPtr, asm.At(scrReg, scrMax+4*r))
		g.Cmp(aPtr, asm.Imm32(negInfBits-1<<32))
		g.Jcc(asm.Zero, skip)
		g.I(asm.VBROADCASTSS, oldMul, asm.At(scrReg, scrOldMul+4*r))
		g.I(asm.VBROADCASTSS, newMul, asm.At(scrReg, scrNewMul+4*r))
		for j := range vectors {
			acc, out := g.v(r*vectors+j), asm.At(outPtr, 4*r*g.PaddedDim()+j*g.v(0).Bytes())
			g.I(asm.VADDPS, acc, acc, zero)
			g.I(asm.VMULPS, acc, acc, newMul)
			g.I(asm.VFMADD231PS, acc, oldMul, out)
			g.I(asm.VMOVUPS, out, acc)
		}
		g.Bind(skip)
	}
}
