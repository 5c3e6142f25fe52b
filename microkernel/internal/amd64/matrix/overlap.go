package matrix

import (
	"unsafe"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/jit"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// Kernels of form Overlap unpack the next superblock while the unit multiplies the current one: the
// functions for whole pairs of row tiles have the instructions of unpacking between those of the
// products. Two unpacked superblocks are in use at a time, so they stay in the first-level cache.
// Only the first superblock of a call is unpacked before the products start.
//
// Variant v > 0 of the function, which has the place of 1+v panels, unpacks unpackedEach(v)
// sub-blocks with each of the first pairs of row tiles.
const planeVariants = 3

// planeSubBlocks is the number of sub-blocks of a superblock.
const planeSubBlocks = kernel.ActQ8Group / qtype.SubBlockK

// unpackedEach returns the number of sub-blocks that a variant unpacks with each pair of row tiles:
// 4, 2 or 1.
func unpackedEach(variant int) int { return planeSubBlocks >> variant }

// variantFor returns the variant for so many pairs of row tiles: that which spreads unpacking over
// the most pairs. Without enough pairs it returns 0.
func variantFor(pairs int) int {
	variant := planeVariants
	for variant > 0 && pairs < planeSubBlocks/unpackedEach(variant) {
		variant--
	}
	return variant
}

// overlaps reports whether a call of so many rows unpacks while it multiplies.
func overlaps(s kernel.Spec, rows int) bool {
	return s.Form == kernel.Overlap && s.MR == PairRows && s.NR == PairPanels*qtype.PanelWidth &&
		variantFor(rows/PairRows) > 0
}

// planesWalk visits the superblocks of a call in the order in which they are multiplied: pieces of
// planesDepth k, the panels of a piece, the superblocks of a panel.
type planesWalk struct {
	g      *kernel.GemmArgs
	b      qtype.Type
	panels int
	from   int // first k of the piece
	p, k   int // panel and k of the superblock
}

// next moves to the next superblock and reports whether there is one.
func (w *planesWalk) next() bool {
	w.k += kernel.ActQ8Group
	if w.k < min(w.from+planesDepth, w.g.K1) {
		return true
	}
	if w.p++; w.p == w.panels {
		w.p, w.from = 0, w.from+planesDepth
	}
	w.k = w.from
	return w.k < w.g.K1
}

// at returns the address of the packed superblock.
func (w *planesWalk) at() uintptr {
	return uintptr(w.g.B) + uintptr(w.p*w.g.BStride+w.b.PanelOffset(w.k))
}

// runOverlapped computes a call of enough rows.
func (args *PlanesArgs) runOverlapped(k *kernel.Tiles, g *kernel.GemmArgs, unpack jit.Func,
	call func(f jit.Func, args *PlanesArgs)) {
	variant := variantFor(g.M / PairRows)
	now := planesWalk{g: g, b: k.Spec.B, panels: (g.N + qtype.PanelWidth - 1) / qtype.PanelWidth, from: g.K0, k: g.K0}
	args.unpackTo(unpack, now.at(), 0, 1)
	for block, more := 0, true; more; block ^= 1 {
		next := now
		if more = next.next(); !more {
			variant = 0
		}
		args.ahead = args.prefetchFrom(next, more)
		if more {
			args.unpack.From, args.unpack.To = next.at(), args.block(block^1)
		}
		args.start(g, now.p, now.k == g.K0 && !g.Accumulate, block)
		args.superblock(k, g, now.p, now.k, variant, call)
		now = next
	}
}

// prefetchFrom returns the address of the superblock after the one that is being unpacked: of this
// call or the first of the next one. It returns 0 without one.
func (args *PlanesArgs) prefetchFrom(unpacked planesWalk, more bool) uintptr {
	if more && unpacked.next() {
		return unpacked.at()
	}
	return uintptr(unpacked.g.NextB)
}

// Unpacking emits parts of the unpacking of a superblock for functions that multiply another one.
// It uses the pointers UnpackFrom, at the first sub-block, and UnpackTo, the vector registers from
// Lowest on, and temporaries whose values it does not need from one step to the next.
type Unpacking struct {
	Lowest    int
	Constants func()          // emits loads of constants
	Head      func()          // emits the scales and offsets of the superblock
	SubBlock  func() []func() // returns steps that unpack a sub-block and advance the pointers
}

// The pointers of Unpacking.
const (
	UnpackFrom = asm.RBX
	UnpackTo   = asm.R15
)

// unpackSteps returns the steps of so many sub-blocks.
func (e *planesTile) unpackSteps(subBlocks int) (steps []func()) {
	for range subBlocks {
		steps = append(steps, e.unpacking.SubBlock()...)
	}
	return steps
}

// startUnpacking sets up unpacking and writes scales and offsets.
func (e *planesTile) startUnpacking() {
	var t PlanesArgs
	e.Mov(UnpackFrom, e.arg(unsafe.Offsetof(t.unpack)+unsafe.Offsetof(t.unpack.From)))
	e.Mov(UnpackTo, e.arg(unsafe.Offsetof(t.unpack)+unsafe.Offsetof(t.unpack.To)))
	e.unpacking.Constants()
	e.unpacking.Head()
}

// overlapped emits the loops over pairs of row tiles of a variant: the first pairs with parts of
// the unpacking, then the others.
func (e *planesTile) overlapped() {
	var t PlanesArgs
	variant := e.s.NR/qtype.PanelWidth - 1
	each := unpackedEach(variant)
	last := e.NewLabel()
	e.placeOfNextC()
	interleave(e.multiply(), between{0, e.unpackSteps(each)})
	e.storeSums()
	e.MovImm(e.count, uint64(planeSubBlocks/each-1))
	e.loop(func() { e.pair(e.unpackSteps(each)) })
	e.Mov(e.count, e.arg(unsafe.Offsetof(t.turns)))
	e.Sub(e.count, asm.Imm32(planeSubBlocks/each))
	e.Jcc(asm.Zero, last)
	e.loop(func() { e.Counted(func() { e.pair(nil) }) })
	e.Bind(last)
	eachStep(e.scaleRows(PairRows))
}
