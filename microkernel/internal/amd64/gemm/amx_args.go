package gemm

import (
	"sync"
	"unsafe"

	"sandwich/microkernel/internal/amd64/matrix"
	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// AMXRows is the number of rows of a tile register.
const AMXRows = matrix.Rows

// amxArgs are the arguments of a tile function of Dot AMX, for one piece of k. Operands pass
// through memory because tiles are loaded from there, and sums because AMX cannot scale them. A
// row tile is packed once for all panels, and each panel is converted to bytes once for all row
// tiles; both stay in the first-level cache. The arguments start at a multiple of amxAlign.
type amxArgs struct {
	kernel.TileArgs
	ready   uintptr // 1: the weights are bytes already
	panels  uintptr
	left    uintptr // panels left, including the current one
	panel   uintptr // where it begins
	rowTile uintptr // where C of the row tile begins
	length  uintptr // of a panel as bytes
	stop    uintptr // where the bytes of the current panel end
	rowsEnd uintptr // where the packed rows end
	ask     uintptr // Spread: where the prefetch of the current panel continues
	step    uintptr // how far it goes with each sub-block,
	sweep   uintptr // and with each row tile
	_       [amxSums - unsafe.Sizeof(kernel.TileArgs{}) - 11*unsafe.Sizeof(uintptr(0))]byte
	// sums of amxAhead sub-blocks: for each span of k that shares scales, at most two, [rows][16
	// columns]int32
	sums [amxAhead * 2 * amxSumBytes]byte
	// rows: for each sub-block [rows]ActQ8, each in a line; the first amxAhead sub-blocks are
	// repeated after the last one
	rows [(amxDepth/qtype.SubBlockK + amxAhead) * amxRowBytes]byte
	// weights: [panel][sub-block][8][16 columns][4 k]int8, and padding that is read but not used
	bytes [(amxDepth/qtype.SubBlockK*amxPanels + amxAhead) * amxPanelBytes]byte
}

const (
	amxAlign      = 4096 // so that the places of two sums differ in one bit
	amxSums       = 512
	amxSumBytes   = 4 * AMXRows * qtype.PanelWidth
	amxRowData    = amxSums + amxAhead*2*amxSumBytes
	amxRow        = 64
	amxRowBytes   = AMXRows * amxRow
	amxWeights    = amxRowData + (amxDepth/qtype.SubBlockK+amxAhead)*amxRowBytes
	amxPanelBytes = qtype.SubBlockK * qtype.PanelWidth

	// amxDepth is the k of a piece: the block of the K types. Four panels of it as bytes, 16 KiB,
	// and the rows, 10 KiB, leave half of the first-level cache of CPUs with AMX to C and the
	// prefetched data.
	amxDepth  = 256
	amxPanels = 8 // the most panels of a call
)

// amxAhead is the number of sub-blocks by which the products precede the scaling of their sums.
// From the load of a tile to its sums in memory takes as long as scaling four sums, and a stored
// tile can be read after the store has left the core for the cache.
const amxAhead = 2

// amxPool reuses arguments, which are too large to clear for each call.
var amxPool = sync.Pool{New: func() any {
	b := make([]byte, unsafe.Sizeof(amxArgs{})+amxAlign)
	return (*amxArgs)(unsafe.Pointer(&b[-uintptr(unsafe.Pointer(&b[0]))%amxAlign]))
}}

// runAMX computes one call of a kernel of Dot AMX.
func runAMX(k *kernel.Tiles, g *kernel.GemmArgs) {
	args := amxPool.Get().(*amxArgs)
	args.run(k, *g, callAMX)
	amxPool.Put(args)
}

func callAMX(f jit.Func, args *amxArgs) { f.Call(unsafe.Pointer(args)) }

// run computes a call in pieces of k, each of which continues from the stored C.
func (args *amxArgs) run(k *kernel.Tiles, g kernel.GemmArgs, call func(f jit.Func, args *amxArgs)) {
	s, panels := &k.Spec, (g.N+qtype.PanelWidth-1)/qtype.PanelWidth
	next, k1 := g.NextB, g.K1
	for from := g.K0; ; from = g.K1 {
		g.K0, g.K1, g.NextB = from, min(from+amxDepth, k1), next
		if g.K1 < k1 {
			g.NextB = unsafe.Add(g.B, s.B.PanelOffset(g.K1))
		}
		args.TileArgs = k.Args(&g, g.N-(panels-1)*qtype.PanelWidth)
		args.piece(uintptr(g.K1-g.K0)/qtype.SubBlockK, uintptr(panels))
		if s.Spread {
			places := max(1, (g.M+s.MR-1)/s.MR*(g.K1-g.K0)/qtype.SubBlockK)
			args.step = uintptr((s.B.PanelOffset(g.K1-g.K0) + places - 1) / places)
			args.sweep = args.step * uintptr(g.K1-g.K0) / qtype.SubBlockK
		}
		for _, higher := range [...]bool{true, false} {
			if f := k.RowTiles(&args.TileArgs, &g, panels, higher); f.Valid() {
				call(f, args)
			}
		}
		if g.K1 == k1 {
			return
		}
		g.Accumulate = true
	}
}

// piece sets the arguments that depend on the sub-blocks and panels of a piece of k.
func (args *amxArgs) piece(subBlocks, panels uintptr) {
	args.ready, args.panels = 0, panels
	args.length = subBlocks * amxPanelBytes
	args.rowsEnd = uintptr(unsafe.Pointer(&args.rows)) + subBlocks*amxRowBytes
}
