package matrix

import (
	"slices"
	"unsafe"

	"sandwich/microkernel/internal/amd64/asm"
	"sandwich/microkernel/internal/kernel"
	"sandwich/microkernel/qtype"
)

// planesTile generates the tile functions over unpacked superblocks. The function of whole pairs of
// row tiles scales the sums of a pair while the next pair is multiplied; that of fewer rows scales
// them afterwards, in a loop over the rows.
type planesTile struct {
	*asm.Asm
	s     kernel.Spec
	desc  *qtype.Desc
	tiles int

	step  asm.Reg   // 64, the distance of rows of weights
	lda   asm.Reg   // bytes between rows of activations,
	ldc   asm.Reg   // and of C
	a     []asm.Reg // of each tile of rows
	rowAt asm.Reg   // the row whose sums are scaled,
	cAt   asm.Reg   // and its place in C
	b     asm.Reg   // planes
	count asm.Reg
	ahead asm.Reg
	cNext asm.Reg // bytes from a row of C to that of the next pair of row tiles

	scale, offset asm.Vec
	pairs         []asm.Vec // offsets
	t             [][]asm.Vec
	unpacking     *Unpacking // nil: the function only multiplies
}

// planesSideBySide is the number of rows that are scaled side by side.
const planesSideBySide = 4

// kLoad is the opmask of the columns that continue from the stored C.
const kLoad = asm.K2

// PlanesTile allocates the registers of the tile functions of a spec, and returns the function that
// emits them. unpacking allocates the registers of unpacking, for functions that need it; see
// Unpacking.
func PlanesTile(a *asm.Asm, s kernel.Spec, unpacking func(temps []asm.Vec) *Unpacking) (emit func()) {
	e := &planesTile{Asm: a, s: s, desc: s.B.Desc(), tiles: (s.MR + Rows - 1) / Rows,
		step: asm.RDX, lda: asm.RAX, ldc: asm.RCX, a: []asm.Reg{asm.R8, asm.R9}, rowAt: asm.R10, cAt: asm.R11,
		b: asm.RSI, count: asm.R12, ahead: asm.R13, cNext: asm.R14}
	next := 0
	vec := func() asm.Vec { next++; return asm.Z(next - 1) }
	e.scale = vec()
	if e.desc.Affine() {
		e.offset = vec()
		for range e.offsetPairs() {
			e.pairs = append(e.pairs, vec())
		}
	}
	for range planesSideBySide {
		e.t = append(e.t, []asm.Vec{vec(), vec(), vec(), vec()})
	}
	if s.Form == kernel.Overlap && s.MR == PairRows && s.NR > qtype.PanelWidth {
		e.unpacking = unpacking(slices.Concat(e.t...))
		if e.unpacking.Lowest < next {
			a.Fail("unpacking needs vector registers from %d on, and the tile has %d", e.unpacking.Lowest, next)
		}
	}
	return e.function
}

// offsetPairs returns the number of pairs of sub-blocks that have offsets of their own.
func (e *planesTile) offsetPairs() int { return kernel.ActQ8Group / e.desc.Span() / 2 }

// sumsOfOffsets returns the offset in the activations of the sums that offsets are multiplied by.
func (e *planesTile) sumsOfOffsets() int {
	if e.desc.Span() == qtype.SubBlockK {
		return kernel.ActKSums
	}
	return kernel.ActKHalfSums
}

func (e *planesTile) arg(offset uintptr) asm.Mem { return asm.At(rArgs, int(offset)) }

func (e *planesTile) function() {
	var t PlanesArgs
	e.AssumeTiles([8]uint8{Rows, Rows, Rows, Rows, Rows, Rows, Rows, Rows})
	e.LdTileCfg(e.arg(unsafe.Offsetof(t.config)))
	if e.unpacking != nil {
		e.startUnpacking()
	}
	e.Mov32(e.count, e.arg(unsafe.Offsetof(t.mask)))
	e.KMovW(kLast, e.count)
	e.Mov32(e.count, e.arg(unsafe.Offsetof(t.load)))
	e.KMovW(kLoad, e.count)
	e.Mov(e.b, e.arg(unsafe.Offsetof(t.planes)))
	e.I(asm.VMOVUPS, e.scale, asm.At(e.b, kernel.PlaneScales))
	if e.desc.Affine() {
		e.I(asm.VMOVUPS, e.offset, asm.At(e.b, kernel.PlaneScales+cacheLine))
		for i, p := range e.pairs {
			e.I(asm.VMOVUPS, p, asm.At(e.b, kernel.PlanePairs+cacheLine*i))
		}
	}
	e.MovImm(e.step, 64)
	e.Mov(e.lda, e.arg(unsafe.Offsetof(t.lda)))
	e.Mov(e.ldc, e.arg(unsafe.Offsetof(t.ldc)))
	e.Mov(e.a[0], e.arg(unsafe.Offsetof(t.a)))
	e.Mov(e.rowAt, e.a[0])
	e.Mov(e.cAt, e.arg(unsafe.Offsetof(t.c)))
	e.Mov(e.ahead, e.arg(unsafe.Offsetof(t.ahead)))
	if e.tiles > 1 {
		e.Lea(e.a[1], asm.AtIndex(e.a[0], e.lda, 8, 0))
		e.Lea(e.a[1], asm.AtIndex(e.a[1], e.lda, 8, 0))
	}
	switch {
	case e.unpacking != nil:
		e.overlapped()
	case e.s.MR == PairRows:
		e.wholePairs()
	default:
		e.lowerTiles()
	}
	e.TileRelease()
	e.VZeroUpper()
	e.Ret()
}

// wholePairs emits the loop over pairs of row tiles.
func (e *planesTile) wholePairs() {
	var t PlanesArgs
	last := e.NewLabel()
	e.placeOfNextC()
	e.Mov(e.count, e.arg(unsafe.Offsetof(t.turns)))
	eachStep(e.multiply())
	e.storeSums()
	e.Dec(e.count)
	e.Jcc(asm.Zero, last)
	e.loop(func() { e.Counted(func() { e.pair(nil) }) })
	e.Bind(last)
	eachStep(e.scaleRows(PairRows))
}

// placeOfNextC sets the distance of two pairs of row tiles in C.
func (e *planesTile) placeOfNextC() {
	e.Lea(e.cNext, asm.AtIndex(e.ldc, e.ldc, 1, 0))
	for rows := 2; rows < PairRows; rows *= 2 {
		e.Add(e.cNext, e.cNext)
	}
}

// loop runs body as often as the counter says, at least once.
func (e *planesTile) loop(body func()) {
	e.Align(32)
	loop := e.Here()
	body()
	e.Dec(e.count)
	e.Jcc(asm.NotZero, loop)
}

// pair emits the products of the next pair of row tiles, with the scaling of the sums of the
// previous one, which were stored just before, and the steps of unpacking between them.
func (e *planesTile) pair(unpacking []func()) {
	var t PlanesArgs
	for _, a := range e.a {
		for range 4 {
			e.Lea(a, asm.AtIndex(a, e.lda, 8, 0))
		}
	}
	for i := range planesAhead {
		e.Prefetch(asm.T1, asm.At(e.ahead, 64*i))
	}
	e.Add(e.ahead, e.arg(unsafe.Offsetof(t.each)))
	products := e.multiply()
	interleave(products, between{0, unpacking}, between{len(products) / 4, e.scaleRows(PairRows)})
	e.storeSums()
}

// planesAhead is the number of lines of the next block of weights that are prefetched with each
// pair of row tiles.
const planesAhead = 4

// lowerTiles emits one pair of row tiles, or one tile, of as many rows as the argument says.
func (e *planesTile) lowerTiles() {
	var t PlanesArgs
	eachStep(e.multiply())
	e.storeSums()
	e.Mov(e.count, e.arg(unsafe.Offsetof(t.rows)))
	sums := asm.R15
	e.Lea(sums, asm.At(rArgs, planesSumsAt))
	loop := e.Here()
	e.scaleSums(sums, 0, 1)
	e.Add(sums, asm.Imm32(cacheLine))
	e.Dec(e.count)
	e.Jcc(asm.NotZero, loop)
}

func eachStep(steps []func()) {
	for _, step := range steps {
		step()
	}
}

// between is a list of steps that are emitted evenly from a step of another list on.
type between struct {
	from  int
	steps []func()
}

// interleave emits products, and the steps of others between them.
func interleave(products []func(), others ...between) {
	done := make([]int, len(others))
	for i, step := range products {
		step()
		for j, o := range others {
			for ; i >= o.from && done[j]*(len(products)-o.from) < (i-o.from+1)*len(o.steps); done[j]++ {
				o.steps[done[j]]()
			}
		}
	}
	for j, o := range others {
		eachStep(o.steps[done[j]:])
	}
}

// planeSum returns the tile of the sums of a plane and a tile of rows.
func planeSum(plane, r int) asm.Tile { return asm.Tile(2*plane + r) }

// multiply returns the steps that compute the sums of a superblock.
func (e *planesTile) multiply() (steps []func()) {
	const group = 64 // k of a product
	for plane := range 2 {
		for r := range e.tiles {
			steps = append(steps, func() { e.TileZero(planeSum(plane, r)) })
		}
	}
	for k := 0; k < kernel.ActQ8Group; k += group {
		for plane := range 2 {
			b := asm.Tile(planesB + plane)
			steps = append(steps, func() {
				e.TileLoad(b, asm.AtIndex(e.b, e.step, 1, plane*kernel.PlaneBytes+k*qtype.PanelWidth))
			})
			for r := range e.tiles {
				a := asm.Tile(planesA + r)
				if plane == 0 {
					steps = append(steps, func() { e.TileLoad(a, asm.AtIndex(e.a[r], e.lda, 1, k)) })
				}
				steps = append(steps, func() { e.TileDot(asm.TDPBSSD, planeSum(plane, r), a, b) })
			}
		}
	}
	return steps
}

// storeSums stores the sums for scaling.
func (e *planesTile) storeSums() {
	for plane := range 2 {
		for r := range e.tiles {
			e.TileStore(asm.AtIndex(rArgs, e.step, 1, planesSumsAt+(2*plane+r)*planeSums), planeSum(plane, r))
		}
	}
}

// scaleRows returns the steps that add the stored sums of so many rows to C.
func (e *planesTile) scaleRows(rows int) (steps []func()) {
	for r := 0; r < rows; r += planesSideBySide {
		steps = append(steps, func() { e.scaleSums(rArgs, planesSumsAt+cacheLine*r, min(planesSideBySide, rows-r)) })
	}
	return steps
}

// scaleSums adds the sums of n rows, which are stored from the given address on, to C: conversion
// of the exact integer, then one FMA by the product of the scales, and one for the offsets.
func (e *planesTile) scaleSums(sums asm.Reg, at, n int) {
	for r, t := range e.t[:n] {
		sum, scale, offset, acc := t[0], t[1], t[2], t[3]
		of := asm.At(e.rowAt, kernel.ActKScale).Bcast()
		e.I(asm.VPSLLD, sum, asm.At(sums, at+cacheLine*r), asm.Imm(kernel.PlaneShift))
		e.I(asm.VPADDD, sum, sum, asm.At(sums, at+cacheLine*r+2*planeSums))
		e.I(asm.VCVTDQ2PS, sum, sum)
		e.I(asm.VMULPS, scale, e.scale, of)
		e.I(asm.VMOVUPS, acc.KZ(kLoad), asm.At(e.cAt, 0))
		e.I(asm.VFMADD231PS, acc, sum, scale)
		if e.desc.Affine() {
			e.I(asm.VPXORD, offset, offset, offset)
			for i, p := range e.pairs {
				e.I(asm.VPDPWSSD, offset, p, asm.At(e.rowAt, e.sumsOfOffsets()+4*i).Bcast())
			}
			e.I(asm.VCVTDQ2PS, offset, offset)
			e.I(asm.VMULPS, scale, e.offset, of)
			e.I(asm.VFNMADD231PS, acc, offset, scale)
		}
		e.I(asm.VMOVUPS, asm.At(e.cAt, 0).K(kLast), acc)
		if e.s.MR == PairRows {
			e.Prefetch(asm.T0, asm.AtIndex(e.cAt, e.cNext, 1, 0))
		}
		e.Add(e.rowAt, e.lda)
		e.Add(e.cAt, e.ldc)
	}
}
