package matrix

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
	bf16Wide = 2 // the most panels next to two tiles of rows
	// bf16Depth is the k of a piece if several pairs of row tiles pass over it: with two panels, 16
	// KiB of weights, which stay in the first-level cache while the rows pass.
	bf16Depth = 512
	bf16Ahead = 2 // lines of each panel of the next block that a step prefetches
)

// BF16Args are the arguments of a tile function. They start at a multiple of a cache line.
type BF16Args struct {
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
	tail [PairPanels * bf16StepBytes]byte
}

// bf16StepBytes is the size of a step of a panel.
const bf16StepBytes = 2 * kernel.TileK * qtype.PanelWidth

// NewBF16Args allocates arguments.
func NewBF16Args() *BF16Args {
	b := make([]byte, unsafe.Sizeof(BF16Args{})+cacheLine)
	return (*BF16Args)(unsafe.Pointer(&b[-uintptr(unsafe.Pointer(&b[0]))%cacheLine]))
}

// bf16Pool reuses arguments, which are too large to clear for each call.
var bf16Pool = sync.Pool{New: func() any { return NewBF16Args() }}

// RunBF16 computes one call of a kernel of the path ComputeBF16Tile.
func RunBF16(k *kernel.Tiles, g *kernel.GemmArgs) {
	args := bf16Pool.Get().(*BF16Args)
	args.Run(k, *g, callBF16)
	bf16Pool.Put(args)
}

func callBF16(f jit.Func, args *BF16Args) { f.Call(unsafe.Pointer(args)) }

// Run computes a call in pieces of k, each of which continues from the stored C.
func (args *BF16Args) Run(k *kernel.Tiles, g kernel.GemmArgs, call func(f jit.Func, args *BF16Args)) {
	depth := g.K1 - g.K0
	if g.M > PairRows {
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
func (args *BF16Args) copyTail(g *kernel.GemmArgs, from, bytes int) {
	clear(args.tail[:])
	for p := range (g.N + qtype.PanelWidth - 1) / qtype.PanelWidth {
		copy(args.tail[p*bf16StepBytes:], unsafe.Slice((*byte)(unsafe.Add(g.B, p*g.BStride+from)), bytes))
	}
}

// piece computes [K0, K1), whole steps, of a call whose panels at K0 are given.
func (args *BF16Args) piece(k *kernel.Tiles, g *kernel.GemmArgs, b unsafe.Pointer, bStride int,
	call func(f jit.Func, args *BF16Args)) {
	panels := (g.N + qtype.PanelWidth - 1) / qtype.PanelWidth
	pairs := 0
	if k.Spec.MR == PairRows {
		pairs = g.M / PairRows
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
		wide := PairPanels
		if rows > Rows {
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
func (args *BF16Args) prefetch(g *kernel.GemmArgs, p, pairs int) {
	args.ahead, args.each = args.b, 0
	if g.NextB != nil {
		args.ahead = uintptr(g.NextB) + uintptr(p*g.BStride)
		args.each = uintptr((bf16StepBytes + pairs - 1) / pairs)
	}
}

// configure sets the configuration of the tiles for so many rows and panels, and columns of the
// last panel.
func (args *BF16Args) configure(rows, panels, columns int) {
	var tileRows, bytes [8]uint8
	tiles := (rows + Rows - 1) / Rows
	for r := range tiles {
		height := min(Rows, rows-r*Rows)
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

// ValidateBF16 returns why the tile registers cannot hold the tile, or nil.
func ValidateBF16(s kernel.Spec) error {
	switch {
	case s.NR > PairPanels*qtype.PanelWidth:
		return fmt.Errorf("a tile of %s has up to %d columns", s.Dot, PairPanels*qtype.PanelWidth)
	case s.Prefetch > 0 || s.Form != kernel.Load:
		return fmt.Errorf("%s has neither a prefetch distance nor embedded broadcasts", s.Dot)
	}
	return nil
}

// BF16Code returns the spec whose code serves s: one for each number of row tiles and panels.
func BF16Code(s kernel.Spec) kernel.Spec {
	s.MR = (s.MR + Rows - 1) / Rows * Rows
	if s.MR > Rows {
		s.NR = min(s.NR, bf16Wide*qtype.PanelWidth)
	}
	s.Spread = false
	return s
}
