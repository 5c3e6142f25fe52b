package vecgen

import (
	"fmt"
	"unsafe"

	"sandwich/microkernel/internal/amd64/asm"
)

// Fused describes a fused attention kernel: Rows query vectors against blocks of 64 positions of
// one KV head, scores, softmax, value product and the merge into the running state in one call.
type Fused struct {
	Rows    int  // query vectors, 1 to MaxRows
	HeadDim int  // elements of a query vector
	F16     bool // elements of K and V: half precision ...
	Int8    bool // ... or int8 with scales (fused8.go); else single precision
	Rounded bool // half precision that holds bfloat16
	Window  bool // rows see nothing of the positions that StateSkip counts
	Cap     bool // scores are capped softly before the softmax (fused_adjust.go)
	Dot     Dot  // what scores and values are added up by
	Paired  bool // blocks are opened already (fused_pairs.go, fused_chance8.go), for a Dot that wants it
	Permute bool // the CPU has VPERMB
}

// FusedArgs is what the trampoline hands to a fused kernel.
type FusedArgs struct {
	Q, State, Scratch, KV, Table unsafe.Pointer
	Blocks                       int // how many entries of Table to go through
	Pitch                        int // bytes between the blocks of consecutive ids
	// last entry of Table that there is, behind Blocks too: what is prefetched
	Last  unsafe.Pointer
	Scale float32        // of the scores, or of the capped ones
	After unsafe.Pointer // the block that is prefetched during the one that Last names
	// with Cap: a score becomes SoftCap*tanh(score*Factor/2)
	Factor, SoftCap float32
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
	offAfter
	offFactor
	offSoftCap = offFactor + 4
)

// A state has sixteen entries each of the running maxima, the running sums, the positions up to the
// last one seen and those before the first one seen (int32 both), then the output rows. Before the
// first block: -Inf, 0, the positions from there, and zeros.
const (
	StateRows   = 16 // entries
	StateMax    = 0
	StateSum    = 64
	StateLeft   = 128
	StateSkip   = 192
	StateOut    = 256
	scrSeen     = 0 // scratch: positions of the block that a row sees
	scrOldMul   = 64
	scrNewMul   = 128
	scrMax      = 192
	scrSum      = 256
	scrLargest  = 320 // the largest of scrSeen, and the smallest of the rows that there are
	scrSmallest = 324
	scrAnyLow   = 328 // the largest of scrLow
	scrLow      = 384 // positions of the block before the first that a row sees
	scrP        = 448 // scores, then probabilities: [rows][64]
	positions   = 64  // of a block
	rowP        = 4 * positions
	maxColumns  = 4 // panels of a register tile
	unroll      = 8 // k-steps in a turn of the inner loop
)

// MaxRows is the largest Fused.Rows at a level: what fits the registers beside two panels of
// columns, or one with AVX2, or the rows of a tile; 0 where the level lacks the dot product.
func MaxRows(level asm.Level, d Dot) int {
	switch {
	case level == asm.AVX512 && d == TDPBF16:
		return tileRows
	case level == asm.AVX512:
		return 12
	case d == FMA:
		return 6
	}
	return 0
}

// paddedDim is the head dimension in whole panels: the length of an output row.
func (f Fused) paddedDim() int { return (f.HeadDim + group - 1) / group * group }

// StateBytes is the size of a state, ScratchBytes that of the scratch of one call.
func (f Fused) StateBytes() int { return StateOut + 4*f.Rows*f.paddedDim() }

// ScratchBytes: see StateBytes.
func (f Fused) ScratchBytes() int {
	switch {
	case f.integers():
		return f.integerBytes()
	case f.few():
		return f.fewBytes()
	case f.streams():
		return max(f.fewBytes(), f.pairAt()+streamBuffers*streamBytes)
	case f.Dot != FMA && !f.Paired:
		return max(f.fewBytes(), f.pairAt()+f.PairBytes())
	}
	return f.scaleAt() + 2*f.scaleFloats()*4
}

// size is that of an element of a cached block.
func (f Fused) size() int {
	switch {
	case f.Int8:
		return 1
	case f.F16:
		return 2
	}
	return 4
}

// panels is how many panels of sixteen columns a register tile holds: as many as fit, so that few
// rows still have enough independent chains to hide the latency of the multiply-add.
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

// columns is how many panels a register tile of the kernel holds.
func (g *fused) columns() int {
	if g.integers() {
		return g.integerColumns()
	}
	return g.panels(g.Rows * g.sums())
}

// GenerateFused returns the code of a fused attention kernel.
func GenerateFused(level asm.Level, f Fused) ([]byte, error) {
	if most := MaxRows(level, f.Dot); f.Rows < 1 || f.Rows > most || f.HeadDim < 1 {
		return nil, fmt.Errorf("attention kernel: %d rows of %d are outside 1 to %d rows", f.Rows, f.HeadDim, most)
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
	if !g.chained() && !g.Paired && !g.integers() {
		g.pairsInPlace()
	}
	scores, values := g.products()
	scores()
	g.adjustScores()
	g.softmaxRows()
	g.mergeSums()
	switch {
	case g.integers():
		g.integerChances()
	case g.few():
		g.roundChained()
	case g.Dot != FMA:
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

// products are what computes scores, and values.
func (g *fused) products() (scores, values func()) {
	switch {
	case g.integers():
		return g.integerScores, g.integerValues
	case g.few() && g.Dot == TDPBF16:
		return g.fewScores, g.fewValues
	case g.streams():
		return g.streamScores, g.streamValues
	case g.Dot == TDPBF16:
		return g.tileScores, g.tileValues
	}
	return g.scores, g.values
}

// keyBytes is the distance from a block of keys to its values.
func (f Fused) keyBytes() int {
	switch {
	case f.Paired && f.integers():
		return f.PairBytes() / 2
	case f.Paired:
		return f.pairKeyBytes()
	}
	return positions*f.HeadDim*f.size() + 2*f.scaleFloats()
}

// next sets the prefetch pointer to the block that the table names after this one, or to the one
// that the caller wants where the table ends.
func (g *fused) next() {
	last := g.NewLabel()
	g.Mov(ahead, asm.At(args, offAfter))
	g.Mov(count, asm.At(args, offAhead))
	g.Cmp(table, count)
	g.Jcc(asm.AboveOrEqual, last)
	g.blockAddress(ahead, 1)
	g.Bind(last)
}

// blockAddress computes the address of the block whose id stands `entry` places behind the current
// one. It clobbers count.
func (g *fused) blockAddress(dst asm.Reg, entry int) {
	g.MovSXD(dst, asm.At(table, 4*entry))
	g.Mov(count, asm.At(args, offPitch))
	g.IMul(dst, count)
	g.Add(dst, asm.At(args, offKV))
}

// seen stores how many positions of the block each row sees, takes a block off what is left, and
// leaves the largest of them in count with the flags set on it.
func (g *fused) seen() {
	left, n, t := g.v(0), g.v(1), g.v(2)
	g.I(asm.VMOVUPS, left, asm.At(stateReg, StateLeft))
	g.I(asm.VXORPS, n, n, n)
	g.I(asm.VPMAXSD, n, n, left)
	g.I(asm.VPMINSD, n, n, g.splat(positions))
	g.I(asm.VMOVUPS, asm.At(scrReg, scrSeen), n)
	if g.Window {
		g.skipped(n)
	}
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
