package matrix

import (
	"unsafe"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// bf16Tile generates the tile function.
type bf16Tile struct {
	*asm.Asm
	tiles, panels int
	a, b          []asm.Reg // of each tile of rows, and of each panel
	step          asm.Reg   // 64, the distance of rows of the tiles of weights
	ahead         asm.Reg
}

// BF16Tile allocates the registers of the tile function of a spec, and returns the function that
// emits it.
func BF16Tile(a *asm.Asm, s kernel.Spec) (emit func()) {
	s = BF16Code(s)
	e := &bf16Tile{Asm: a, tiles: (s.MR + Rows - 1) / Rows, panels: s.NR / qtype.PanelWidth}
	pool := pointerPool[:]
	e.a, pool = pool[:e.tiles], pool[e.tiles:]
	e.b, pool = pool[:e.panels], pool[e.panels:]
	e.step, e.ahead = pool[0], pool[1]
	return e.function
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
	var t BF16Args
	e.AssumeTiles([8]uint8{Rows, Rows, Rows, Rows, Rows, Rows, Rows, Rows})
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
	var t BF16Args
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
	var t BF16Args
	e.Mov(rCount, e.arg(unsafe.Offsetof(t.ldc)))
	e.Mov(rB, e.arg(unsafe.Offsetof(t.c)))
	e.Add(rB, e.arg(unsafe.Offsetof(t.cStep)))
	for range PairRows {
		for p := range e.panels {
			e.Prefetch(asm.T1, asm.At(rB, 4*qtype.PanelWidth*p))
		}
		e.Add(rB, rCount)
	}
}

// eachSum visits the places of all sums in C. It overwrites rB and rCount.
func (e *bf16Tile) eachSum(visit func(m asm.Mem, t asm.Tile)) {
	var t BF16Args
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
		var t BF16Args
		e.Add(e.ahead, e.arg(unsafe.Offsetof(t.each)))
	}
}
