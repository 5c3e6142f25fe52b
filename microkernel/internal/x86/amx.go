package x86

import (
	"sync"
	"unsafe"

	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// amxRows is the rows of a tile register.
const amxRows = 16

// amxArgs is what a tile function of Dot AMX gets: weights as bytes, and the sums of spans, pass
// through memory, since tiles are loaded from there, and AMX cannot scale them. It begins at a
// multiple of amxAlign.
type amxArgs struct {
	kernel.TileArgs
	ready uintptr // 1: the weights are bytes already
	stop  uintptr // where these bytes end
	last  uintptr // where those begin that the last product but amxAhead is of
	step  uintptr // Spread: how far the prefetch of the next block goes with each sub-block
	_     [amxSums - unsafe.Sizeof(kernel.TileArgs{}) - 4*unsafe.Sizeof(uintptr(0))]byte
	// of amxAhead sub-blocks in turn: for each span of k that shares scales, at most two, and each
	// panel, [rows][16 columns]int32
	sums  [amxAhead * 2 * amxSumBytes]byte
	bytes [amxWeightBytes]byte // weights: for each sub-block [panel][8][16 columns][4 k]int8
}

const (
	amxAlign       = 4096 // so that the places of two sums differ in one bit
	amxSums        = 512
	amxSumBytes    = 4 * amxRows * qtype.PanelWidth
	amxWeights     = amxSums + amxAhead*2*amxSumBytes
	amxWeightBytes = 16 << 10 // a third of the first-level cache of the CPUs that have AMX
	amxPanelBytes  = qtype.SubBlockK * qtype.PanelWidth
)

// amxAhead is how many sub-blocks the products are ahead of the scaling of their sums. From the
// load of a tile to its sums in memory takes as long as scaling four, and a tile that was stored is
// read when the store has left the core for the cache.
const amxAhead = 2

// amxRoom keeps arguments for later calls: they are too long to be cleared for each.
var amxRoom = sync.Pool{New: func() any {
	b := make([]byte, unsafe.Sizeof(amxArgs{})+amxAlign)
	return (*amxArgs)(unsafe.Pointer(&b[-uintptr(unsafe.Pointer(&b[0]))%amxAlign]))
}}

// runAMX is one call of a kernel of Dot AMX.
func runAMX(k *kernel.Tiles, g *kernel.GemmArgs) {
	args := amxRoom.Get().(*amxArgs)
	args.run(k, *g, callAMX)
	amxRoom.Put(args)
}

func callAMX(f jit.Func, args *amxArgs) { f.Call(unsafe.Pointer(args)) }

// run does a call in pieces of k whose weights have room as bytes, each of which goes on from the
// stored C.
func (args *amxArgs) run(k *kernel.Tiles, g kernel.GemmArgs, call func(f jit.Func, args *amxArgs)) {
	s, panels := &k.Spec, (g.N+qtype.PanelWidth-1)/qtype.PanelWidth
	next, k1 := g.Next, g.K1
	depth := amxWeightBytes / amxPanelBytes / panels * qtype.SubBlockK
	for from := g.K0; ; from = g.K1 {
		g.K0, g.K1, g.Next = from, min(from+depth, k1), next
		if g.K1 < k1 {
			g.Next = unsafe.Add(g.B, s.B.PanelOffset(g.K1))
		}
		args.TileArgs = k.Args(&g, g.N-(panels-1)*qtype.PanelWidth)
		n := (g.K1 - g.K0) / qtype.SubBlockK
		args.ready = 0
		args.stop = uintptr(unsafe.Pointer(&args.bytes)) + uintptr(n*panels*amxPanelBytes)
		args.last = args.stop - amxAhead*uintptr(panels*amxPanelBytes)
		places := max(1, (g.M+s.MR-1)/s.MR*n)
		args.step = uintptr((s.B.PanelOffset(g.K1-g.K0) + places - 1) / places)
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
