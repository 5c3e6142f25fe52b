package kernel

import (
	"unsafe"

	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/qtype"
)

// Tiles is a kernel with its loaded tile functions.
type Tiles struct {
	Spec  Spec
	Funcs []jit.Func // [rows-1][panels-1]: one for every smaller tile too, for the tails

	// Derived from the spec, for every call.
	iteration int // elements of k
	bytes     int // of a panel in an iteration
	distance  int // of prefetches, in iterations
	plain     bool
}

// NewTiles returns a kernel whose code is not loaded yet.
func NewTiles(s Spec) Tiles {
	return Tiles{Spec: s, iteration: s.Iteration(), bytes: s.B.PanelOffset(s.Iteration()),
		distance: s.IterationsAhead(), plain: !s.MatrixUnit() && s.Form != DequantOnce}
}

// Plain reports whether RunPlain does what GEMM.Run of the target does.
func (k *Tiles) Plain() bool { return k.plain }

// RunPlain implements GEMM.Run for kernels that need no state other than their arguments; see
// Plain.
func (k *Tiles) RunPlain(g *GemmArgs) {
	panels := (g.N + qtype.PanelWidth - 1) / qtype.PanelWidth
	t := k.Args(g, g.N-(panels-1)*qtype.PanelWidth)
	k.runRows(&t, g, panels)
}

// runRows divides the rows of a call into tiles.
func (k *Tiles) runRows(t *TileArgs, g *GemmArgs, panels int) {
	for _, higher := range [...]bool{true, false} {
		if f := k.RowTiles(t, g, panels, higher); f.Valid() {
			f.Call(unsafe.Pointer(t))
		}
	}
}

// RowTiles divides the rows of a call into tiles of nearly equal height and prepares t for the row
// tiles that have one row more than the others or, after them, for the others. It returns the
// function that runs them, or the zero Func if there are none.
func (k *Tiles) RowTiles(t *TileArgs, g *GemmArgs, panels int, higher bool) jit.Func {
	s := &k.Spec
	tiles, rows, more := 1, g.M, 0
	if g.M > s.MR {
		tiles = (g.M + s.MR - 1) / s.MR
		rows, more = g.M/tiles, g.M%tiles
	}
	n := tiles - more
	if higher {
		rows, n = rows+1, more
		t.Period, t.Countdown = uintptr(tiles), uintptr(tiles)
	}
	if n == 0 {
		return jit.Func{}
	}
	t.Tiles = uintptr(n)
	t.AStep, t.CStep = uintptr(rows*g.AStride), uintptr(rows*g.CStride)
	return k.Funcs[(rows-1)*(s.NR/qtype.PanelWidth)+panels-1]
}

// Args returns the arguments of a tile function for a call; last is the number of columns in the
// last panel.
func (k *Tiles) Args(g *GemmArgs, last int) TileArgs {
	s := &k.Spec
	t := TileArgs{
		A: uintptr(g.A), LDA: uintptr(g.AStride),
		B: uintptr(g.B), BStride: uintptr(g.BStride),
		C: uintptr(g.C), LDC: uintptr(g.CStride),
		Mask: 1<<last - 1, Columns: uintptr(last),
	}
	if g.K0 > 0 {
		t.A += uintptr(s.Compute.ActRowBytes(g.K0))
		t.B += uintptr(s.B.PanelOffset(g.K0))
	}
	n := g.K1 - g.K0
	t.Main = uintptr(n / k.iteration)
	t.Rest = uintptr(n - int(t.Main)*k.iteration)
	k.setPrefetch(&t, g)
	switch {
	case s.Compute == ComputeBF16:
		t.Rest = (t.Rest + 1) / 2 // the last pair of an odd K is whole
	case s.B == qtype.BF16:
		t.Odd = t.Rest % 2
		t.Rest /= 2
	}
	if g.Accumulate {
		t.Load = 1
	}
	if last == qtype.PanelWidth {
		t.Lanes = allLanes
		return t
	}
	for i := range last {
		t.Lanes[i] = -1
	}
	return t
}

// allLanes is the lane mask of a last panel of full width.
var allLanes = [qtype.PanelWidth]int32{-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1}

// setPrefetch sets the arguments of software prefetch.
func (k *Tiles) setPrefetch(t *TileArgs, g *GemmArgs) {
	t.NextB = uintptr(g.NextB)
	if g.NextB == nil {
		t.NextB = t.B // a spread prefetch then requests lines that are already cached
	}
	t.InNext = min(t.Main, uintptr(k.distance))
	t.InBlock = t.Main - t.InNext
	if g.NextB != nil {
		t.Jump = t.NextB - t.B - t.Main*uintptr(k.bytes)
	}
}
