package kernel

import (
	"unsafe"

	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/qtype"
)

// GemmArgs is one call of a kernel: C[0:M, 0:N] = A[0:M, K0:K1] times the transpose of W[0:N,
// K0:K1], for one group of panels.
//
// A points at k = 0 of the first row: float32, ActQ8 blocks for ComputeInt8, bfloat16 for
// ComputeBF16. B points at k = 0 of the first panel of the group. C is float32. Nothing is written
// outside the M rows and N columns, and nothing is read outside the operands.
type GemmArgs struct {
	A       unsafe.Pointer
	AStride int // bytes between rows
	B       unsafe.Pointer
	BStride int // bytes between panels
	C       unsafe.Pointer
	CStride int // bytes between rows

	M, N   int // rows, any; columns, 1 to NR
	K0, K1 int // multiples of the weight type's KStep; K1 may also be the end of an odd K
	// Accumulate continues the chains from the stored C. A k-block after the first sets it; the
	// first starts from zero.
	Accumulate bool
	// Next, where it is known, is where the block of weights begins that is multiplied after this
	// one, at its k and with the same distance between panels: kernels that prefetch do so there.
	// It need not be mapped.
	Next unsafe.Pointer
}

// TileArgs is what a generated tile function gets: tiles row tiles of exactly MR rows, against
// panels of exactly NR columns. It moves a and c forward itself. Addresses are numbers because the
// function changes them; the caller keeps what they point at alive.
type TileArgs struct {
	A, LDA     uintptr // first row of A, bytes between rows
	B, BStride uintptr // first panel, bytes between panels
	C, LDC     uintptr // first row of C, bytes between rows
	Main       uintptr // iterations of the unrolled loop (blocks, for quantized weights)
	Rest       uintptr // single steps after it (pairs of k for bf16)
	Odd        uintptr // bf16: one last k without a partner
	Tiles      uintptr
	AStep      uintptr // MR rows of A in bytes
	CStep      uintptr // MR rows of C in bytes
	Load       uintptr // 1: continue from the stored C; 0: start from zero
	Mask       uintptr // columns of the last panel, one bit each
	Columns    uintptr // the same as a number
	Lanes      [qtype.PanelWidth]int32

	// Of prefetching, see the backends.
	Ahead  uintptr // iterations before what is prefetched is the next block of weights
	Behind uintptr // iterations after that
	Left   uintptr // of them, those that the present row tile has not begun
	Jump   uintptr // from the end of this block of weights to the next one
	Next   uintptr // where spread prefetching goes on
	Period uintptr // of spread prefetching: row tiles
	Tick   uintptr // places left until its next line
}

// RunPlain is what Run of a target does where a call needs nothing but the arguments.
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

// RowTiles is the function that runs the row tiles which have one row more than the others, or
// these others after them, and points t at them; the zero Func where there are none.
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
		t.Period, t.Tick = uintptr(tiles), uintptr(tiles)
	}
	if n == 0 {
		return jit.Func{}
	}
	t.Tiles = uintptr(n)
	t.AStep, t.CStep = uintptr(rows*g.AStride), uintptr(rows*g.CStride)
	return k.Funcs[(rows-1)*(s.NR/qtype.PanelWidth)+panels-1]
}

// Args translates the call; last is the number of columns in the last panel.
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
	k.aim(&t, g)
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

// allLanes is a last panel of full width.
var allLanes = [qtype.PanelWidth]int32{-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1}

// aim says where the kernel prefetches.
func (k *Tiles) aim(t *TileArgs, g *GemmArgs) {
	t.Next = uintptr(g.Next)
	if g.Next == nil {
		t.Next = t.B // spread: the block at hand, which costs nothing more
	}
	t.Behind = min(t.Main, uintptr(k.ahead))
	t.Ahead = t.Main - t.Behind
	if g.Next != nil {
		t.Jump = t.Next - t.B - t.Main*uintptr(k.bytes)
	}
}
