package microkernel

import (
	"fmt"
	"runtime"
	"unsafe"

	"sandwich/microkernel/internal/asm"
)

// amxRows is the rows of a tile register.
const amxRows = 16

// amxArgs is what a tile function of Dot AMX gets: the sums of a block of k pass through memory, since AMX cannot scale them.
type amxArgs struct {
	tileArgs
	sums [amxRows][PanelWidth]int32
}

// runAMX is Run for Dot AMX.
func (k *Kernel) runAMX(g *GemmArgs) {
	args := amxArgs{tileArgs: k.tileArgs(g, g.N)}
	k.runRows(&args.tileArgs, g, 1)
	runtime.KeepAlive(g)
}

// amxTile generates the tile of the chain "block" for q8_0 on AMX: for each block of 32 k one tile product, whose exact integers
// are the ones of the other dot products, and then the same conversion and FMA.
type amxTile struct {
	turns
	engine amxEngine
	step   asm.Reg   // 64, the distance of rows of W and of sums
	w      asm.Vec   // scales of W
	d, x   []asm.Vec // integer sums, and products of scales, of several rows side by side
}

// amxEngine is the part of the function that only a machine with AMX can run; tests put another in its place.
type amxEngine struct {
	begin, block, end func(e *amxTile)
}

// amxSideBySide is how many rows are scaled at the same time.
const amxSideBySide = 4

// amxRegisters is the vector registers of a tile.
func amxRegisters(tile int) int { return tile + 1 + 2*amxSideBySide }

func emitAMX(a *asm.Asm, s Spec) {
	emitAMXWith(a, s, amxEngine{beginAMX, blockAMX, (*amxTile).TileRelease})
}

func emitAMXWith(a *asm.Asm, s Spec, engine amxEngine) {
	e := &amxTile{turns: newTurns(newEmitter(a, s)), engine: engine}
	e.step = e.pointer()
	e.w, e.d, e.x = e.vec(), e.vecs(amxSideBySide), e.vecs(amxSideBySide)
	e.atEnd = func() { engine.end(e) }
	e.function(func() {
		engine.begin(e)
		e.MovImm(e.step, 64)
	}, func() {
		e.blocks(e.mainLoop, func() {
			engine.block(e)
			e.scaleSums()
			e.advance(e.aBase, ActQ8Bytes)
		})
	})
}

// The tiles: sums, activations, weights.
const (
	amxC asm.Tile = iota
	amxA
	amxB
)

func beginAMX(e *amxTile) {
	rows := uint8(e.s.MR)
	c := asm.TileConfig([8]uint8{rows, rows, turnK / 4}, [8]uint8{4 * PanelWidth, turnK, 4 * PanelWidth})
	e.LdTileCfg(e.Const(c[:]))
}

// blockAMX multiplies signed activations, [rows][32 k], by unsigned weights, [8][16 columns][4 k] as they are packed.
func blockAMX(e *amxTile) {
	e.TileLoad(amxA, asm.AtIndex(e.aBase[0], rLDA, 1, actQ))
	e.TileLoad(amxB, asm.AtIndex(e.bBase[0], e.step, 1, e.quants()))
	e.TileZero(amxC)
	e.TileDot(asm.TDPBSUD, amxC, amxA, amxB)
	e.TileStore(asm.AtIndex(rArgs, e.step, 1, amxSums(0)), amxC)
}

// amxSums is where the sums of row r are in the arguments.
func amxSums(r int) int {
	var x amxArgs
	return int(unsafe.Offsetof(x.sums) + uintptr(r)*unsafe.Sizeof(x.sums[0]))
}

// scaleSums adds the sums of a block to the accumulators: bias, conversion, one FMA by the product of the scales.
func (e *amxTile) scaleSums() {
	e.I(asm.VCVTPH2PS, e.w, e.half(0, 0))
	for r0 := 0; r0 < e.s.MR; r0 += amxSideBySide {
		each := func(step func(i, r int)) {
			for r := r0; r < min(r0+amxSideBySide, e.s.MR); r++ {
				step(r-r0, r)
			}
		}
		each(func(i, r int) { e.I(asm.VMOVUPS, e.d[i], asm.At(rArgs, amxSums(r))) })
		each(func(i, r int) { e.I(asm.VPADDD, e.d[i], e.d[i], e.a(r, actBias).Bcast()) })
		each(func(i, _ int) { e.I(asm.VCVTDQ2PS, e.d[i], e.d[i]) })
		each(func(i, r int) { e.I(asm.VMULPS, e.x[i], e.w, e.a(r, actScale).Bcast()) })
		each(func(i, r int) { e.I(asm.VFMADD231PS, e.acc[r], e.d[i], e.x[i]) })
	}
}

// validateAMX says what the tile registers cannot hold.
func (s Spec) validateAMX() error {
	switch {
	case s.ISA != AVX512:
		return fmt.Errorf("amx goes with avx512")
	case s.B != Q8_0:
		return fmt.Errorf("amx multiplies q8_0 weights, which are packed as bytes")
	case s.MR > amxRows || s.NR != PanelWidth:
		return fmt.Errorf("a tile of amx has up to %d rows and %d columns", amxRows, PanelWidth)
	case s.prefetches() || s.Form != Load:
		return fmt.Errorf("amx has neither prefetch nor embedded broadcasts")
	}
	return nil
}

// proven runs a kernel of Dot AMX against its definition, once for each build: no machine that this code was written on has AMX.
func (k *Kernel) proven() error {
	const cols, blocks = PanelWidth, 3
	m, seed := k.spec.MR+3, uint32(1)
	random := func() uint32 { seed = seed*1664525 + 1013904223; return seed >> 8 }
	panel := make([]byte, PanelOffset(Q8_0, 32*blocks))
	for i := range panel {
		panel[i] = byte(random())
	}
	for b := range blocks { // scales that are finite
		for c := range cols {
			panel[b*PanelOffset(Q8_0, 32)+2*c+1] = byte(0x20 + random()%8)
		}
	}
	a := make([]ActQ8, m*blocks)
	for i := range a {
		a[i].Scale = float32(random()%1000) / 1000
		for j := range a[i].Q {
			a[i].Q[j] = int8(random()%255) - 127
		}
		a[i].setSums()
	}
	got, want := make([]float32, m*cols), make([]float32, m*cols)
	g := GemmArgs{A: unsafe.Pointer(&a[0]), AStride: blocks * ActQ8Bytes, B: unsafe.Pointer(&panel[0]), C: unsafe.Pointer(&got[0]),
		CStride: 4 * cols, M: m, N: cols, K1: 32 * blocks}
	k.Run(&g)
	g.C = unsafe.Pointer(&want[0])
	RunRef(k.spec, &g)
	for i := range want {
		if got[i] != want[i] {
			return fmt.Errorf("kernel spec %s: the tiles of this CPU give %g where %g is right: use dot product vnni", k.spec, got[i], want[i])
		}
	}
	runtime.KeepAlive(panel)
	return nil
}
