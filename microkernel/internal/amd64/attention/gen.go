package attention

import (
	"math"
	"unsafe"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/amd64/lanes"
	"sandwich/microkernel/internal/kernel"
)

// gen generates one attention kernel.
type gen struct {
	*lanes.Gen
	spec
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

// Registers of a kernel.
const (
	args     = lanes.Args
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
	ahead    = asm.R13 // the line to prefetch
	passes   = asm.R14
	outPtr   = asm.R15
)

const (
	maxColumns = 4 // panels of a register tile
	unroll     = 8 // k-steps in an iteration of the inner loop
)

var negInf = float32(math.Inf(-1))

// product is a register tile: rows of A, k-major panels of B, `columns` panels wide.
type product struct {
	columns     int // panels
	panelStride int // bytes between panels of B
	rowStride   int // bytes between rows of A
	lines       int // cache lines of the next block to prefetch every `unroll` k-steps
	scale       int8Scale
	odd         int // parity of the first k-step within 32 k
}

// int8Scale selects the scales of a product.
type int8Scale struct {
	value bool // scales of values: one per k-step, in all lanes; otherwise of keys: one per lane
	set   int  // the first panel of values, or the set of dimensions of the keys
}

// columns returns the number of panels in a register tile.
func (g *gen) columns() int {
	if g.integers() {
		return g.integerColumns()
	}
	return g.panels(g.Rows * g.chains())
}

// panels returns the number of panels of sixteen columns in a register tile: as many as fit, so
// that few rows still have enough independent chains to hide the latency of the multiply-add.
func (g *gen) panels(rows int) int {
	registers := 16
	if g.Wide {
		registers = 32
	}
	p := 1
	for p < maxColumns && rows*2*p*g.Parts+max(2*p*g.Parts+1, 3) <= registers {
		p *= 2
	}
	return p
}

// loopPasses repeats pass as often as the register passes says, at least once.
func (g *gen) loopPasses(pass func()) {
	loop := g.Here()
	pass()
	g.Dec(passes)
	g.Jcc(asm.NotZero, loop)
}

// countDown emits a loop over count steps, which may be none: `unroll` steps at a time, and single
// steps for the rest.
func (g *gen) countDown(unroll int, steps func(n int)) {
	rest, done := g.NewLabel(), g.NewLabel()
	g.Sub(count, asm.Imm32(int32(unroll)))
	g.Jcc(asm.Less, rest)
	g.Align(16)
	loop := g.Here()
	steps(unroll)
	g.Sub(count, asm.Imm32(int32(unroll)))
	g.Jcc(asm.GreaterEqual, loop)
	g.Bind(rest)
	g.Add(count, asm.Imm32(int32(unroll)))
	g.Jcc(asm.Zero, done)
	one := g.Here()
	steps(1)
	g.Dec(count)
	g.Jcc(asm.NotZero, one)
	g.Bind(done)
}

// clear zeroes the accumulators of a product.
func (g *gen) clear(p product) {
	for i := range g.Rows * p.columns * g.Parts * g.chains() {
		g.Zero(i)
	}
}

// roundToBF16 rounds the float32 of a register to bfloat16, to nearest even, and widens the result
// to float32 again.
func (g *gen) roundToBF16(x asm.Vec) {
	g.I(asm.VCVTNE2PS2BF16, x, x, x)
	g.I(asm.VPMOVZXWD, x, x.Y())
	g.I(asm.VPSLLD, x, x, asm.Imm(16))
}

// overPasses runs pass for `panels` panels, as many at a time as the tile holds; only the last pass
// may be narrower. Where the code of a pass depends on its first panel, each is emitted.
func (g *gen) overPasses(panels, columns int, pass func(first, columns int)) {
	if g.Int8 && g.chained() {
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
