package gemm

import (
	"fmt"
	"sync"
	"unsafe"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// Kernels of the path ComputeBF16Tile keep the sums of one or two tiles of rows by up to four
// panels in tile registers over all k of a piece. TDPBF16PS reads activations and packed weights as
// they are, so nothing is unpacked.
const (
	pairRows   = 2 * AMXRows // of a call with two tiles of rows
	pairPanels = 4           // the most panels of a call, next to one tile of rows
	bf16Wide   = 2           // the most panels next to two tiles of rows
	// bf16Depth is the k of a piece if several pairs of row tiles pass over it: with two panels, 16
	// KiB of weights, which stay in the first-level cache while the rows pass.
	bf16Depth = 512
	bf16Ahead = 2 // lines of each panel of the next block that a step prefetches
)

// bf16Args are the arguments of a tile function. They start at a multiple of a cache line.
type bf16Args struct {
	config     [64]byte // of the tile registers
	a, lda     uintptr
	b, bStride uintptr
	c, ldc     uintptr
	steps      uintptr // of TileK k
	turns      uintptr // tiles of rows, or pairs of them
	aStep      uintptr // bytes between them
	cStep      uintptr
	load       uintptr // 1: continue from the stored C
	ahead      uintptr // where the prefetch of the next block of weights is,
	each       uintptr // and the bytes it advances by in each step
	// tail holds the last k of panels that end within a step, and zeros after them.
	tail [pairPanels * bf16StepBytes]byte
}

// bf16StepBytes is the size of a step of a panel.
const bf16StepBytes = 2 * kernel.TileK * qtype.PanelWidth

// bf16Pool reuses arguments, as amxPool does.
var bf16Pool = sync.Pool{New: func() any {
	b := make([]byte, unsafe.Sizeof(bf16Args{})+cacheLine)
	return (*bf16Args)(unsafe.Pointer(&b[-uintptr(unsafe.Pointer(&b[0]))%cacheLine]))
}}

// runBF16Tile computes one call of a kernel of the path ComputeBF16Tile.
func runBF16Tile(k *kernel.Tiles, g *kernel.GemmArgs) {
	args := bf16Pool.Get().(*bf16Args)
	args.run(k, *g, callBF16)
	bf16Pool.Put(args)
}

func callBF16(f jit.Func, args *bf16Args) { f.Call(unsafe.Pointer(args)) }

// run computes a call in pieces of k, each of which continues from the stored C.
func (args *bf16Args) run(k *kernel.Tiles, g kernel.GemmArgs, call func(f jit.Func, args *bf16Args)) {
	depth := g.K1 - g.K0
	if g.M > pairRows {
		depth = bf16Depth
	}
	next, k1 := g.NextB, g.K1
	for from := g.K0; from < k1; from = g.K1 {
		g.K0, g.K1, g.NextB = from, min(from+depth, k1), next
		if g.K1 < k1 {
			g.NextB = unsafe.Add(g.B, k.Spec.B.PanelOffset(g.K1))
		}
		whole := (g.K1 - g.K0) / kernel.TileK * kernel.TileK
		if whole > 0 {
			at := g
			at.K1 = g.K0 + whole
			args.piece(k, &at, unsafe.Add(g.B, k.Spec.B.PanelOffset(g.K0)), g.BStride, call)
			g.Accumulate = true
		}
		if rest := g.K1 - g.K0 - whole; rest > 0 {
			args.copyTail(&g, k.Spec.B.PanelOffset(g.K0+whole), (rest+1)/2*4*qtype.PanelWidth)
			g.K0, g.K1 = g.K0+whole, g.K0+whole+kernel.TileK
			args.piece(k, &g, unsafe.Pointer(&args.tail), bf16StepBytes, call)
			return
		}
	}
}

// copyTail copies the last bytes of the panels of a call, from an offset on.
func (args *bf16Args) copyTail(g *kernel.GemmArgs, from, bytes int) {
	clear(args.tail[:])
	for p := range (g.N + qtype.PanelWidth - 1) / qtype.PanelWidth {
		copy(args.tail[p*bf16StepBytes:], unsafe.Slice((*byte)(unsafe.Add(g.B, p*g.BStride+from)), bytes))
	}
}

// piece computes [K0, K1), whole steps, of a call whose panels at K0 are given.
func (args *bf16Args) piece(k *kernel.Tiles, g *kernel.GemmArgs, b unsafe.Pointer, bStride int,
	call func(f jit.Func, args *bf16Args)) {
	panels := (g.N + qtype.PanelWidth - 1) / qtype.PanelWidth
	pairs := 0
	if k.Spec.MR == pairRows {
		pairs = g.M / pairRows
	}
	args.lda, args.ldc, args.bStride = uintptr(g.AStride), uintptr(g.CStride), uintptr(bStride)
	args.steps = uintptr((g.K1 - g.K0) / kernel.TileK)
	args.load = 0
	if g.Accumulate {
		args.load = 1
	}
	done := 0
	for tiles := pairs; done < g.M; tiles = 1 {
		rows := min(g.M-done, k.Spec.MR)
		if tiles == 0 {
			continue
		}
		wide := pairPanels
		if rows > AMXRows {
			wide = bf16Wide
		}
		for p := 0; p < panels; p += wide {
			n := min(wide, panels-p)
			columns := min(n*qtype.PanelWidth, g.N-p*qtype.PanelWidth)
			args.configure(rows, n, columns-(n-1)*qtype.PanelWidth)
			args.a = uintptr(g.A) + uintptr(done*g.AStride+k.Spec.Compute.ActRowBytes(g.K0))
			args.b = uintptr(b) + uintptr(p*bStride)
			args.c = uintptr(g.C) + uintptr(done*g.CStride+4*p*qtype.PanelWidth)
			args.prefetch(g, p, tiles)
			args.turns, args.aStep, args.cStep = uintptr(tiles), uintptr(rows*g.AStride), uintptr(rows*g.CStride)
			call(k.Funcs[(rows-1)*(k.Spec.NR/qtype.PanelWidth)+n-1], args)
		}
		done += tiles * rows
	}
}

// prefetch spreads the prefetch of the panels from p on of the next block over pairs of row tiles.
func (args *bf16Args) prefetch(g *kernel.GemmArgs, p, pairs int) {
	args.ahead, args.each = args.b, 0
	if g.NextB != nil {
		args.ahead = uintptr(g.NextB) + uintptr(p*g.BStride)
		args.each = uintptr((bf16StepBytes + pairs - 1) / pairs)
	}
}

// configure sets the configuration of the tiles for so many rows and panels, and columns of the
// last panel.
func (args *bf16Args) configure(rows, panels, columns int) {
	var tileRows, bytes [8]uint8
	tiles := (rows + AMXRows - 1) / AMXRows
	for r := range tiles {
		height := min(AMXRows, rows-r*AMXRows)
		for p := range panels {
			tileRows[r*panels+p], bytes[r*panels+p] = uint8(height), 4*qtype.PanelWidth
			if p == panels-1 {
				bytes[r*panels+p] = uint8(4 * columns)
			}
		}
		tileRows[bf16A+r], bytes[bf16A+r] = uint8(height), 2*kernel.TileK
	}
	for b := bf16A + tiles; b < bf16LastB; b++ {
		tileRows[b], bytes[b] = kernel.TileK/2, 4*qtype.PanelWidth
	}
	tileRows[bf16LastB], bytes[bf16LastB] = kernel.TileK/2, uint8(4*columns)
	args.config = asm.TileConfig(tileRows, bytes)
}

// Tile registers: sums, rows of activations, weights of the panels before the last one, and those
// of the last one, which may have fewer columns.
const (
	bf16A     = 4
	bf16LastB = 7
)

// validateBF16Tile returns why the tile registers cannot hold the tile, or nil.
func (s spec) validateBF16Tile() error {
	switch {
	case s.NR > pairPanels*qtype.PanelWidth:
		return fmt.Errorf("a tile of %s has up to %d columns", s.Dot, pairPanels*qtype.PanelWidth)
	case s.Prefetch > 0 || s.Form != kernel.Load:
		return fmt.Errorf("%s has neither a prefetch distance nor embedded broadcasts", s.Dot)
	}
	return nil
}

// bf16Code returns the spec whose code serves s: one for each number of row tiles and panels.
func bf16Code(s kernel.Spec) kernel.Spec {
	s.MR = (s.MR + AMXRows - 1) / AMXRows * AMXRows
	if s.MR > AMXRows {
		s.NR = min(s.NR, bf16Wide*qtype.PanelWidth)
	}
	s.Spread = false
	return s
}

// bf16Tile generates the tile function.
type bf16Tile struct {
	*asm.Asm
	tiles, panels int
	a, b          []asm.Reg // of each tile of rows, and of each panel
	step          asm.Reg   // 64, the distance of rows of the tiles of weights
	ahead         asm.Reg
}

func newBF16Tile(a *asm.Asm, s spec) (_ *emitter, emit func()) {
	s.Spec = bf16Code(s.Spec)
	e := &bf16Tile{Asm: a, tiles: (s.MR + AMXRows - 1) / AMXRows, panels: s.NR / qtype.PanelWidth}
	pool := pointerPool[:]
	e.a, pool = pool[:e.tiles], pool[e.tiles:]
	e.b, pool = pool[:e.panels], pool[e.panels:]
	e.step, e.ahead = pool[0], pool[1]
	return &emitter{Asm: a, s: s}, e.function
}

func (e *bf16Tile) arg(offset uintptr) asm.Mem { return asm.At(rArgs, int(offset)) }

// aTile and bTile return the tile registers of operands.
func (e *bf16Tile) aTile(r int) asm.Tile { return asm.Tile(bf16A + r) }

func (e *bf16Tile) bTile(p int) asm.Tile {
	if p == e.panels-1 {
		return bf16LastB
	}
	first := bf16A + e.tiles
	return asm.Tile(first + p%(bf16LastB-first))
}

func (e *bf16Tile) sum(r, p int) asm.Tile { return asm.Tile(r*e.panels + p) }

// function emits the loop over row tiles.
func (e *bf16Tile) function() {
	var t bf16Args
	e.AssumeTiles([8]uint8{AMXRows, AMXRows, AMXRows, AMXRows, AMXRows, AMXRows, AMXRows, AMXRows})
	e.LdTileCfg(e.arg(unsafe.Offsetof(t.config)))
	e.MovImm(e.step, 64)
	e.Mov(rLDA, e.arg(unsafe.Offsetof(t.lda)))
	e.Mov(rBS, e.arg(unsafe.Offsetof(t.bStride)))
	e.Mov(e.ahead, e.arg(unsafe.Offsetof(t.ahead)))
	top := e.Here()
	e.start()
	e.Mov(e.a[0], e.arg(unsafe.Offsetof(t.a)))
	if e.tiles > 1 {
		e.prefetchSums()
		e.Lea(e.a[1], asm.AtIndex(e.a[0], rLDA, 8, 0))
		e.Lea(e.a[1], asm.AtIndex(e.a[1], rLDA, 8, 0))
	}
	e.Mov(e.b[0], e.arg(unsafe.Offsetof(t.b)))
	for p := 1; p < e.panels; p++ {
		e.Lea(e.b[p], asm.AtIndex(e.b[p-1], rBS, 1, 0))
	}
	e.Mov(rCount, e.arg(unsafe.Offsetof(t.steps)))
	e.Align(32)
	loop := e.Here()
	e.Counted(e.multiply)
	e.Dec(rCount)
	e.Jcc(asm.NotZero, loop)
	e.eachSum(func(m asm.Mem, t asm.Tile) { e.TileStore(m, t) })
	for _, f := range [][2]uintptr{{unsafe.Offsetof(t.a), unsafe.Offsetof(t.aStep)}, {unsafe.Offsetof(t.c),
		unsafe.Offsetof(t.cStep)}} {
		e.Mov(rB, e.arg(f[0]))
		e.Add(rB, e.arg(f[1]))
		e.Mov(e.arg(f[0]), rB)
	}
	e.Mov(rB, e.arg(unsafe.Offsetof(t.turns)))
	e.Dec(rB)
	e.Mov(e.arg(unsafe.Offsetof(t.turns)), rB)
	e.Jcc(asm.NotZero, top)
	e.TileRelease()
	e.VZeroUpper()
	e.Ret()
}

// start clears the sums or loads them from C.
func (e *bf16Tile) start() {
	var t bf16Args
	zero, ready := e.NewLabel(), e.NewLabel()
	e.Mov(rB, e.arg(unsafe.Offsetof(t.load)))
	e.Test(rB, rB)
	e.Jcc(asm.Zero, zero)
	e.eachSum(func(m asm.Mem, t asm.Tile) { e.TileLoad(t, m) })
	e.Jmp(ready)
	e.Bind(zero)
	for n := range e.tiles * e.panels {
		e.TileZero(asm.Tile(n))
	}
	e.Bind(ready)
}

// prefetchSums prefetches the places in C of the next pair of row tiles, whose rows are too far
// apart for the prefetchers of the CPU. It overwrites rB and rCount.
func (e *bf16Tile) prefetchSums() {
	var t bf16Args
	e.Mov(rCount, e.arg(unsafe.Offsetof(t.ldc)))
	e.Mov(rB, e.arg(unsafe.Offsetof(t.c)))
	e.Add(rB, e.arg(unsafe.Offsetof(t.cStep)))
	for range pairRows {
		for p := range e.panels {
			e.Prefetch(asm.T1, asm.At(rB, 4*qtype.PanelWidth*p))
		}
		e.Add(rB, rCount)
	}
}

// eachSum visits the places of all sums in C. It overwrites rB and rCount.
func (e *bf16Tile) eachSum(visit func(m asm.Mem, t asm.Tile)) {
	var t bf16Args
	e.Mov(rCount, e.arg(unsafe.Offsetof(t.ldc)))
	e.Mov(rB, e.arg(unsafe.Offsetof(t.c)))
	for r := range e.tiles {
		if r > 0 {
			e.Lea(rB, asm.AtIndex(rB, rCount, 8, 0))
			e.Lea(rB, asm.AtIndex(rB, rCount, 8, 0))
		}
		for p := range e.panels {
			visit(asm.AtIndex(rB, rCount, 1, 4*qtype.PanelWidth*p), e.sum(r, p))
		}
	}
}

// multiply emits a step.
func (e *bf16Tile) multiply() {
	const lines, distance = bf16StepBytes / 64, 2048
	for p := range e.panels {
		e.TileLoad(e.bTile(p), asm.AtIndex(e.b[p], e.step, 1, 0))
		for r := range e.tiles {
			if p == 0 {
				e.TileLoad(e.aTile(r), asm.AtIndex(e.a[r], rLDA, 1, 0))
			}
			e.TileDot(asm.TDPBF16PS, e.sum(r, p), e.aTile(r), e.bTile(p))
		}
		if e.tiles > 1 {
			for i := range bf16Ahead {
				at := asm.At(e.ahead, 64*i)
				if p > 0 {
					at = asm.AtIndex(e.ahead, rBS, p, 64*i)
				}
				e.Prefetch(asm.T1, at)
			}
			continue
		}
		for i := range lines { // one pass over the weights, which come from memory
			e.Prefetch(asm.T0, asm.At(e.b[p], distance+64*i))
		}
	}
	for _, a := range e.a {
		e.Add(a, asm.Imm32(2*kernel.TileK))
	}
	for _, b := range e.b {
		e.Add(b, asm.Imm32(bf16StepBytes))
	}
	if e.tiles > 1 {
		var t bf16Args
		e.Add(e.ahead, e.arg(unsafe.Offsetof(t.each)))
	}
}
