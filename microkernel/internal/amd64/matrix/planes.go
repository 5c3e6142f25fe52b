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

// Kernels of Dot AMX and the path ComputeInt8K unpack their panels to planes of bytes
// (kernel.PlaneBytes), which stay in the second-level cache. Then two tiles of rows are multiplied
// by both planes of a superblock, and the four sums stay in tile registers for all of its 256 k.
const (
	planesDepth = 1024 // k of a piece: its planes, 139 KiB with four panels, leave most of the second-level cache
	maxPlanes   = PairPanels * planesDepth / kernel.ActQ8Group

	planeSums    = 4 * Rows * qtype.PanelWidth // bytes of a tile of sums
	planesSumsAt = 256                         // offset in PlanesArgs
)

// PlanesArgs are the arguments of a tile function of one superblock of a panel. They start at a
// multiple of planesAlign.
type PlanesArgs struct {
	planesHead
	_    [planesSumsAt - unsafe.Sizeof(planesHead{})]byte
	sums [2][2][planeSums]byte // [plane][tile of rows]
	data [maxPlanes * kernel.PlanesBlock]byte
}

// planesHead is what PlanesArgs has before its buffers.
type planesHead struct {
	config [64]byte // of the tile registers
	a, lda uintptr
	c, ldc uintptr
	planes uintptr // of the superblock
	turns  uintptr // pairs of row tiles
	rows   uintptr // of a lower tile; see planesTile
	mask   uintptr // columns
	load   uintptr // mask, or 0 to start from zero
	ahead  uintptr // where the prefetch of the next block of weights is,
	each   uintptr // and the bytes it advances by with each pair of row tiles
	unpack UnpackArgs
}

const planesAlign = 4096

// NewPlanesArgs allocates arguments.
func NewPlanesArgs() *PlanesArgs {
	b := make([]byte, unsafe.Sizeof(PlanesArgs{})+planesAlign)
	return (*PlanesArgs)(unsafe.Pointer(&b[-uintptr(unsafe.Pointer(&b[0]))%planesAlign]))
}

// planesPool reuses arguments, which are too large to clear for each call.
var planesPool = sync.Pool{New: func() any { return NewPlanesArgs() }}

// RunPlanes computes one call of a kernel of Dot AMX and the path ComputeInt8K. unpack unpacks the
// superblocks of a panel to planes, see UnpackArgs.
func RunPlanes(k *kernel.Tiles, g *kernel.GemmArgs, unpack jit.Func) {
	args := planesPool.Get().(*PlanesArgs)
	args.Run(k, *g, unpack, callPlanes)
	planesPool.Put(args)
}

func callPlanes(f jit.Func, args *PlanesArgs) { f.Call(unsafe.Pointer(args)) }

// Run computes a call in pieces of k, each of which continues from the stored C.
func (args *PlanesArgs) Run(k *kernel.Tiles, g kernel.GemmArgs, unpack jit.Func,
	call func(f jit.Func, args *PlanesArgs)) {
	if overlaps(k.Spec, g.M) {
		args.runOverlapped(k, &g, unpack, call)
		return
	}
	b, k1, next := k.Spec.B, g.K1, g.NextB
	panels := (g.N + qtype.PanelWidth - 1) / qtype.PanelWidth
	for from := g.K0; from < k1; from = g.K1 {
		g.K0, g.K1, g.NextB = from, min(from+planesDepth, k1), next
		if g.K1 < k1 {
			g.NextB = unsafe.Add(g.B, b.PanelOffset(g.K1))
		}
		blocks := (g.K1 - g.K0) / kernel.ActQ8Group
		for p := range panels {
			args.unpackTo(unpack, uintptr(g.B)+uintptr(p*g.BStride+b.PanelOffset(g.K0)), p*blocks, blocks)
		}
		for p := range panels {
			for n := range blocks {
				args.ahead = 0
				if g.NextB != nil {
					args.ahead = uintptr(g.NextB) + uintptr(p*g.BStride+n*b.PanelOffset(kernel.ActQ8Group))
				}
				args.start(&g, p, n == 0 && !g.Accumulate, p*blocks+n)
				args.superblock(k, &g, p, g.K0+n*kernel.ActQ8Group, 0, call)
			}
		}
		g.Accumulate = true
	}
}

// unpackTo unpacks superblocks of a panel from an address on to those of data from number `to` on.
func (args *PlanesArgs) unpackTo(unpack jit.Func, from uintptr, to, blocks int) {
	args.unpack = UnpackArgs{from, args.block(to), uintptr(blocks)}
	unpack.Call(unsafe.Pointer(&args.unpack))
}

// block returns the address of an unpacked superblock.
func (args *PlanesArgs) block(n int) uintptr {
	return uintptr(unsafe.Pointer(&args.data)) + uintptr(n*kernel.PlanesBlock)
}

// start sets the arguments of a superblock of panel p: the columns, whether sums start from zero,
// and the number of the unpacked superblock.
func (args *PlanesArgs) start(g *kernel.GemmArgs, p int, zero bool, block int) {
	args.mask = 1<<min(qtype.PanelWidth, g.N-p*qtype.PanelWidth) - 1
	args.load = args.mask
	if zero {
		args.load = 0
	}
	args.planes = args.block(block)
}

// superblock computes the superblock at k0 of panel p. Of the functions for whole pairs of row
// tiles it calls the one of a variant. The prefetch starts at ahead, which is 0 for none.
func (args *PlanesArgs) superblock(k *kernel.Tiles, g *kernel.GemmArgs, p, k0, variant int,
	call func(f jit.Func, args *PlanesArgs)) {
	at := k.Spec.Compute.ActRowBytes(k0)
	args.a, args.lda = uintptr(g.A)+uintptr(at), uintptr(g.AStride)
	args.c, args.ldc = uintptr(g.C)+uintptr(4*p*qtype.PanelWidth), uintptr(g.CStride)
	pairs := 0
	if k.Spec.MR == PairRows {
		pairs = g.M / PairRows
	}
	args.each = 0
	if args.ahead == 0 {
		args.ahead = args.planes
	} else if pairs > 0 {
		args.each = uintptr((k.Spec.B.PanelOffset(kernel.ActQ8Group) + pairs - 1) / pairs)
	}
	if pairs > 0 {
		args.call(k, PairRows, pairs, variant, call)
	}
	for done := pairs * PairRows; done < g.M; done += k.Spec.MR {
		args.a = uintptr(g.A) + uintptr(at+done*g.AStride)
		args.c = uintptr(g.C) + uintptr(4*p*qtype.PanelWidth+done*g.CStride)
		args.call(k, min(k.Spec.MR, g.M-done), 1, 0, call)
	}
}

// call runs the function of a variant for tiles of so many rows.
func (args *PlanesArgs) call(k *kernel.Tiles, rows, turns, variant int, call func(f jit.Func, args *PlanesArgs)) {
	args.rows, args.turns = uintptr(rows), uintptr(turns)
	var tileRows, bytes [8]uint8
	for t := range tileRows {
		bytes[t] = 64
		tileRows[t] = Rows
		if t < planesB && rows > Rows && t%2 == 1 {
			tileRows[t] = uint8(rows - Rows)
		} else if t < planesB {
			tileRows[t] = uint8(min(rows, Rows))
		}
	}
	args.config = asm.TileConfig(tileRows, bytes)
	call(k.Funcs[(rows-1)*(k.Spec.NR/qtype.PanelWidth)+variant], args)
}

// Tile registers: sums by plane and tile of rows, then activations by tile of rows, then weights
// by plane.
const (
	planesA = 4
	planesB = 6
)

// ValidatePlanes returns why the kernel cannot be generated, or nil.
func ValidatePlanes(s kernel.Spec) error {
	switch {
	case s.NR > PairPanels*qtype.PanelWidth:
		return fmt.Errorf("a tile of %s and the path %s has up to %d columns", s.Dot, s.Compute,
			PairPanels*qtype.PanelWidth)
	case s.Prefetch > 0 || s.Form != kernel.Load && s.Form != kernel.Overlap:
		return fmt.Errorf("amx has neither a prefetch distance nor embedded broadcasts")
	}
	return nil
}

// PlanesCode returns the spec whose code serves s: one for whole pairs of row tiles, one for lower
// pairs, and one for single tiles. Kernels of form Overlap have more functions for whole pairs; see
// overlapped.
func PlanesCode(s kernel.Spec) kernel.Spec {
	switch {
	case s.MR == PairRows && s.Form == kernel.Overlap && s.NR > qtype.PanelWidth:
		s.Spread = false
		return s
	case s.MR == PairRows:
	case s.MR > Rows:
		s.MR = PairRows - 1
	default:
		s.MR = Rows
	}
	s.NR, s.Spread, s.Form = qtype.PanelWidth, false, kernel.Load
	return s
}
